"""The report in a browser that has no network."""

import re
from functools import partial
from pathlib import Path

import pytest
from page_parts import PARTS
from tightrope.report.page import render_page

playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    target = tmp_path_factory.mktemp("report") / "summary.html"
    render_page(ROOT / "tests/data/summary.json", target, **PARTS)
    return target


@pytest.fixture(scope="module")
def visit(open_page, report):
    return partial(open_page, report)


@pytest.fixture(scope="module")
def narrow(visit):
    """One page for all that leaves the rest of it alone."""
    return visit(375)


def column(page, title):
    """The cells under that header, from top to bottom."""
    return page.evaluate(
        """title => {
            const table = document.querySelector("table.sortable");
            const heads = [...table.tHead.rows[0].cells];
            const index = heads.findIndex((head) => head.textContent.trim() === title);
            return [...table.tBodies[0].rows].map((row) => row.cells[index].dataset.value);
        }""",
        title,
    )


def colour_of(page, selector, name):
    return page.locator(selector).first.evaluate(f"node => getComputedStyle(node).{name}")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_opens_without_a_request_or_a_word_on_the_console(visit, report, scheme):
    page = visit(scheme=scheme)
    assert page.seen == {"requests": [report.as_uri()], "messages": []}


def frames(page):
    """Widths of the frame and the chart of each plot, and how many marks it has."""
    return page.evaluate(
        """[...document.querySelectorAll(".plot")].map((plot) => [
            plot.getBoundingClientRect().width,
            plot.querySelector("svg").getBoundingClientRect().width,
            plot.querySelectorAll("svg path").length,
        ])"""
    )


def test_the_decision_fills_the_first_screen_and_the_rest_is_folded(visit):
    page = visit(1400, unfolded=False)
    shown = page.locator("#model-1 ~ :is(.lede, .scroll, ul)")
    assert shown.count() == 3
    assert all(one.bounding_box()["y"] + one.bounding_box()["height"] < 1030 for one in shown.all())
    assert page.evaluate("document.documentElement.scrollHeight") < 5000
    titles = page.locator("section > details > summary")
    assert all(one.is_visible() for one in titles.all())
    assert titles.filter(has_text="INT8 pays in onnxruntime of minilm-docstrings (").count() == 1
    assert not page.locator("#int8 table").first.is_visible()


def test_every_chart_is_drawn_inside_its_frame_and_follows_the_window(visit):
    page = visit(1400)
    for width in (1400, 400):
        page.set_viewport_size({"width": width, "height": 900})
        narrow = re.compile(r"^3[0-6]\d(\.\d+)?$" if width == 400 else r"^\d+")
        playwright.expect(page.locator(".plot svg").first).to_have_attribute("width", narrow)
        found = frames(page)
        assert len(found) == 6
        assert all(frame - 20 <= chart <= frame + 1 and marks > 3 for frame, chart, marks in found)


@pytest.mark.parametrize("width", [320, 800, 1400])
def test_the_page_never_scrolls_sideways_even_with_all_details_open(visit, width):
    page = visit(width)
    page.evaluate("document.querySelectorAll('details').forEach((node) => (node.open = true))")
    assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_a_click_sorts_and_a_second_one_turns_the_order(visit):
    page = visit()
    button = page.get_by_role("button", name="p50, ms")
    header = page.locator("th", has=button)
    for order, reverse in (("ascending", False), ("descending", True)):
        button.click()
        assert header.get_attribute("aria-sort") == order
        values = column(page, "p50, ms")
        present = [float(value) for value in values if value]
        assert present == sorted(present, reverse=reverse)
        assert all(not value for value in values[len(present) :])
    assert page.locator("th[aria-sort]").count() == 1
    # the keyboard sorts too, the best first
    page.get_by_role("button", name="Speed-up").focus()
    for key, order in (("Enter", "descending"), ("Space", "ascending")):
        page.keyboard.press(key)
        assert page.locator("#sorted").text_content() == f"Sorted by Speed-up, {order}"


def test_words_filter_the_rows_and_the_address_leads_to_the_same_rows(visit, report):
    page = visit()
    page.get_by_role("searchbox").press_sequentially("OpenVINO  kept")
    rows = page.locator("table.sortable tbody tr:visible")
    texts = rows.all_inner_texts()
    assert 0 < len(texts) < 92
    assert all("openvino" in text and "kept" in text for text in texts)
    assert page.locator("#shown").inner_text() == f"{len(texts)} of 99"
    page.reload()
    page.locator("#shown:not(:empty)").wait_for()
    assert rows.all_inner_texts() == texts
    # a link leads away from them; an address that is no text filters by it, and charts go on
    page.get_by_role("link", name="INT8").first.click()
    assert page.evaluate("location.hash") == "#int8"
    page.goto(report.as_uri() + "#results?100%")
    page.reload()
    page.locator("html[data-charts=light]").wait_for()
    assert page.locator("#shown").inner_text() == f"{rows.count()} of 99"
    page.emulate_media(color_scheme="dark")
    page.locator("html[data-charts=dark]").wait_for()
    assert page.seen["messages"] == []


def test_page_and_charts_change_with_the_colour_scheme(visit):
    page = visit(scheme="light")
    parts = ("body", "backgroundColor"), (".plot .mark-text.role-axis-label text", "fill")
    light = [colour_of(page, *part) for part in parts]
    page.emulate_media(color_scheme="dark")
    page.locator("html[data-charts=dark]").wait_for()
    dark = [colour_of(page, *part) for part in parts]
    assert all(one != other for one, other in zip(light, dark, strict=True))
    assert page.locator(".plot svg").count() == 6
    assert page.seen["messages"] == []


def test_a_script_in_the_summary_stays_text_and_none_that_is_added_runs(visit):
    page = visit()
    assert page.evaluate("window.owned") is None
    assert page.locator("#not-run").get_by_text("<script>window.owned = true</script>").is_visible()
    page.evaluate(
        """() => {
            const script = document.createElement("script");
            script.textContent = "window.owned = true";
            document.body.append(script);
        }"""
    )
    assert page.evaluate("window.owned") is None


def test_a_pointer_on_a_mark_names_its_variant(visit):
    page = visit()
    page.locator(".plot .mark-symbol path").first.hover(force=True)
    tip = page.locator("#vg-tooltip-element")
    tip.wait_for()
    assert "cpu-" in tip.text_content()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_right_answer_has_another_colour_and_a_mark(visit, scheme):
    page = visit(scheme=scheme)
    right, wrong = (f"#answers .flips .verdict.{word}" for word in ("right", "wrong"))
    assert colour_of(page, right, "color") != colour_of(page, wrong, "color")
    mark = "node => getComputedStyle(node, '::before').content"
    assert "\u2713" in page.locator(right).first.evaluate(mark)
    assert "\u2713" not in page.locator(wrong).first.evaluate(mark)


def test_print_shows_the_reasons_and_the_whole_table(visit):
    page = visit(1050, unfolded=False)
    page.emulate_media(media="print")
    assert page.locator("#int8 table").first.is_visible()
    reasons = page.locator(".remarks li")
    assert reasons.count() > 9
    assert all(reasons.nth(index).is_visible() for index in range(reasons.count()))
    assert page.locator("table.sortable").evaluate("node => node.scrollWidth") <= 1050
    page.set_viewport_size({"width": 700, "height": 900})
    for table in page.locator("table.answers").all():
        assert table.evaluate("node => node.scrollWidth") <= 700


def test_without_javascript_numbers_and_reasons_are_there(browser, report):
    context = browser.new_context(java_script_enabled=False, offline=True)
    page = context.new_page()
    page.goto(report.as_uri())
    assert page.locator("#traffic tbody tr").count() == 12
    page.locator("#results .remarks summary").first.click()
    assert page.locator("#results .remarks li").first.is_visible()
    context.close()


@pytest.mark.parametrize(
    ("details", "text"),
    [
        ("#results .remarks", "used 6 % of a core"),
        ("#answers .flips", "<script>window.owned = true</script> is no token"),
        ("#int8 .search details", "kept"),
        ("#int8 .worth details", "collapsed: one answer"),
    ],
)
def test_the_keyboard_opens_what_stands_behind_a_row(narrow, details, text):
    part = narrow.locator(details).filter(has_text=text).first
    told = part.get_by_text(text).first
    assert not told.is_visible()
    part.locator("summary").focus()
    narrow.keyboard.press("Enter")
    assert told.is_visible()
    assert narrow.evaluate("window.owned") is None
    assert narrow.evaluate("document.documentElement.scrollWidth") <= 375


@pytest.mark.parametrize(
    ("table", "names"), [("#traffic .scroll", "[scope=row]"), ("#answers .scroll", "[scope=row]")]
)
def test_a_wide_table_scrolls_under_the_names_of_its_rows(narrow, table, names):
    table = narrow.locator(table).first
    assert table.evaluate("node => node.scrollWidth > node.clientWidth")
    table.evaluate("node => (node.scrollLeft = 200)")
    found, left = table.locator(names), table.bounding_box()["x"]
    assert all(abs(one.bounding_box()["x"] - left) < 1 for one in found.all())


@pytest.mark.parametrize(
    ("place", "link", "target"),
    [("nav", "INT8", "int8"), ("#deploy", "noisy", "steady"), ("#deploy .in-vain", "", "int8")],
)
def test_a_link_leads_to_what_it_names(visit, place, link, target):
    page = visit()
    links = page.locator(place).get_by_role("link")
    (links.filter(has_text=link) if link else links).first.click()
    assert page.evaluate("location.hash") == f"#{target}"
    assert page.locator(f"#{target}").is_visible()
