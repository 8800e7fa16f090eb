"""The report in a browser that has no network."""

import itertools
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
    render_page(
        ROOT / "tests/data/summary.json",
        target,
        **PARTS,
    )
    return target


@pytest.fixture
def visit(open_page, report):
    return partial(open_page, report)


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


@pytest.mark.parametrize("width", [400, 1400])
def test_every_chart_is_drawn_inside_its_frame(visit, width):
    page = visit(width)
    boxes = page.evaluate(
        """[...document.querySelectorAll(".plot")].map((plot) => [
            plot.getBoundingClientRect().width,
            plot.querySelector("svg").getBoundingClientRect().width,
            plot.querySelectorAll("svg path").length,
        ])"""
    )
    assert len(boxes) == 14
    assert all(frame - 20 <= chart <= frame + 1 and marks > 3 for frame, chart, marks in boxes)


@pytest.mark.parametrize("width", [320, 400, 800, 1400])
def test_the_page_never_scrolls_sideways_even_with_all_details_open(visit, width):
    page = visit(width)
    page.evaluate("document.querySelectorAll('details').forEach((node) => (node.open = true))")
    assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_charts_follow_the_width_of_the_window(visit):
    page = visit(1400)
    page.set_viewport_size({"width": 400, "height": 900})
    narrow = re.compile(r"^3[0-6]\d(\.\d+)?$")
    playwright.expect(page.locator(".plot svg").first).to_have_attribute("width", narrow)
    assert page.evaluate("document.documentElement.scrollWidth") <= 400


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


def test_the_keyboard_sorts_too_and_says_so(visit):
    page = visit()
    page.get_by_role("button", name="Speed-up").focus()
    page.keyboard.press("Enter")
    present = [float(value) for value in column(page, "Speed-up") if value]
    assert present == sorted(present, reverse=True)
    assert page.get_by_role("status").text_content() == "Sorted by Speed-up, descending"
    page.keyboard.press("Space")
    assert page.get_by_role("status").text_content() == "Sorted by Speed-up, ascending"


def test_page_and_charts_change_with_the_colour_scheme(visit):
    page = visit(scheme="light")
    parts = ("body", "backgroundColor"), (".plot .mark-text.role-axis-label text", "fill")
    light = [colour_of(page, *part) for part in parts]
    page.emulate_media(color_scheme="dark")
    page.locator("html[data-charts=dark]").wait_for()
    dark = [colour_of(page, *part) for part in parts]
    assert all(one != other for one, other in zip(light, dark, strict=True))
    assert page.locator(".plot svg").count() == 14
    assert page.seen["messages"] == []


def test_a_script_in_the_summary_stays_text(visit):
    page = visit()
    assert page.evaluate("window.owned") is None
    assert page.locator("#not-run").get_by_text("<script>window.owned = true</script>").is_visible()


def test_the_page_may_not_run_what_it_did_not_bring(visit):
    page = visit()
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


def test_the_keyboard_opens_the_reasons_for_noise(visit):
    page = visit(390)
    remarks = page.locator("#results .remarks").filter(has_text="used 6 % of a core").first
    reason = remarks.locator("li").first
    assert not reason.is_visible()
    remarks.locator("summary").focus()
    page.keyboard.press("Enter")
    assert reason.is_visible()


def test_why_no_rate_held_under_traffic_opens_in_the_table(visit):
    page = visit(390)
    reason = page.locator("#traffic .remarks p").first
    assert not reason.is_visible()
    page.locator("#traffic .remarks summary").first.click()
    assert reason.is_visible() and "p99 is over" in reason.text_content()
    assert page.evaluate("document.documentElement.scrollWidth") <= 390


def test_the_table_of_traffic_scrolls_under_the_names_of_its_rows(visit):
    page = visit(400)
    table = page.locator("#traffic .scroll", has=page.locator(".traffic"))
    assert table.evaluate("node => node.scrollWidth > node.clientWidth")
    table.evaluate("node => (node.scrollLeft = 200)")
    names = table.locator("[scope=row], [scope=rowgroup] > span")
    left = table.bounding_box()["x"]
    assert all(abs(one.bounding_box()["x"] - left) < 1 for one in names.all())


@pytest.mark.parametrize("width", [400, 1280])
def test_the_line_at_one_crosses_no_text_of_the_speed_ups(visit, width):
    page = visit(width)
    boxes = page.evaluate(
        """[".mark-rect.role-mark path", ".mark-text.role-mark text"].map((marks) =>
            [...document.querySelectorAll("#speed-ups .plot")].map((plot) =>
                [...plot.querySelectorAll(marks)].map((mark) => mark.getBoundingClientRect())
                    .map((box) => [box.left, box.top, box.right, box.bottom])))"""
    )
    figures = list(zip(*boxes, strict=True))
    assert figures and all(lines and texts for lines, texts in figures)
    for lines, texts in figures:
        for line, text in itertools.product(lines, texts):
            # a text without its rim, which is wider by half of its stroke
            assert line[1] >= text[3] - 2 or text[1] + 2 >= line[3] or text[2] <= line[0]


@pytest.mark.parametrize("width", [400, 1280])
def test_no_label_of_the_histogram_lies_on_another(visit, width):
    page = visit(width)
    boxes = page.evaluate(
        """[...document.querySelectorAll("#traffic .plot svg text")]
            .filter((text) => text.textContent)
            .map((text) => [text.textContent, text.getBoundingClientRect()])
            .map(([text, box]) => [text, box.left, box.top, box.right, box.bottom])"""
    )
    assert len(boxes) > 8
    for one, other in itertools.combinations(boxes, 2):
        apart = one[3] <= other[1] or other[3] <= one[1] or one[4] <= other[2] or other[4] <= one[2]
        assert apart or one[0] == other[0], (one, other)  # a rim lies under its own text


def test_the_keyboard_opens_the_changed_answers_whose_texts_stay_text(visit):
    page = visit(375)
    flips = page.locator("#answers .flips").nth(1)
    text = flips.get_by_text("<script>window.owned = true</script> is no token")
    assert not text.is_visible()
    flips.locator("summary").focus()
    page.keyboard.press("Enter")
    assert text.is_visible()
    assert page.evaluate("window.owned") is None
    page.keyboard.press("Tab")
    table = flips.get_by_role("region")
    assert table.evaluate("node => node === document.activeElement")
    assert table.evaluate("node => node.scrollWidth > node.clientWidth")
    assert page.evaluate("document.documentElement.scrollWidth") <= 375


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_right_answer_has_another_colour_and_a_mark(visit, scheme):
    page = visit(scheme=scheme)
    right, wrong = (f"#answers .flips .verdict.{word}" for word in ("right", "wrong"))
    assert colour_of(page, right, "color") != colour_of(page, wrong, "color")
    mark = "node => getComputedStyle(node, '::before').content"
    assert "\u2713" in page.locator(right).first.evaluate(mark)
    assert "\u2713" not in page.locator(wrong).first.evaluate(mark)


def test_the_table_of_answers_scrolls_under_the_names_of_its_variants(visit):
    page = visit(375)
    table = page.locator("#answers .scroll").first
    assert table.evaluate("node => node.scrollWidth > node.clientWidth")
    table.evaluate("node => (node.scrollLeft = 200)")
    names, left = table.locator("[scope=row]"), table.bounding_box()["x"]
    assert all(abs(one.bounding_box()["x"] - left) < 1 for one in names.all())
    assert max(one.bounding_box()["width"] for one in names.all()) < 375 / 2


def test_the_navigation_leads_to_the_section_on_int8(visit):
    page = visit()
    page.get_by_role("navigation").get_by_role("link", name="INT8").click()
    assert page.evaluate("location.hash") == "#int8"
    assert page.locator("#int8 h2").is_visible()


@pytest.mark.parametrize("width", [375, 1400])
def test_both_panels_over_calibration_samples_have_a_count_at_the_same_place(visit, width):
    page = visit(width)
    figure = page.locator("#int8 figure").first
    marks = figure.locator(".plot").evaluate_all(
        """plots => plots.map((plot) => [...plot.querySelectorAll(".mark-symbol path")]
            .map((mark) => mark.getBoundingClientRect())
            .map((box) => (box.left + box.right) / 2)
            .sort((a, b) => a - b))"""
    )
    assert len(marks) == 2 and len(marks[0]) == len(marks[1]) == 10  # a hollow one is two
    assert all(abs(one - other) < 5 for one, other in zip(*marks, strict=True))


def test_the_keyboard_opens_why_a_variant_collapsed_and_what_was_tried(visit):
    page = visit(375)
    for place, word in ((".quantized .remarks", "at fault: operator"), (".search details", "kept")):
        part = page.locator(f"#int8 {place}")
        told = part.get_by_text(word).first
        assert not told.is_visible()
        part.locator("summary").focus()
        page.keyboard.press("Enter")
        assert told.is_visible()
    page.keyboard.press("Tab")
    table = page.locator("#int8 .search").get_by_role("region")
    assert table.evaluate("node => node === document.activeElement")
    assert page.evaluate("document.documentElement.scrollWidth") <= 375


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_an_operator_left_in_float_has_another_colour_and_a_diamond(visit, scheme):
    page = visit(375, scheme)
    bars = page.locator("#int8 .sensitivity .mark-rect path")
    fills = bars.evaluate_all("nodes => nodes.map((node) => getComputedStyle(node).fill)")
    assert len(fills) == 38
    assert sorted(fills.count(fill) for fill in set(fills)) == [2, 36]
    texts = page.locator("#int8 .sensitivity .mark-text.role-mark text").all_text_contents()
    marked = {text for text in texts if "\u25c6" in text}
    layers = ("bert.encoder.layer.3.output.dense", "bert.encoder.layer.4.output.dense")
    assert marked == {f"\u25c6 {layer}" for layer in layers}


def test_no_name_of_an_operator_reaches_into_its_number_on_a_narrow_page(visit):
    page = visit(375)
    boxes = page.evaluate(
        """[...document.querySelectorAll("#int8 .sensitivity .mark-text.role-mark text")]
            .map((text) => text.getBoundingClientRect())
            .map((box) => [box.left, box.top, box.right, box.bottom])"""
    )
    assert len(boxes) == 4 * 38  # names and numbers, each with its rim
    rows = {}
    for left, top, right, _ in boxes:
        rows.setdefault(round(top), set()).add((round(left), round(right)))
    assert len(rows) == 38
    for ends in rows.values():
        (_, name_ends), (number_starts, _) = sorted(ends)
        assert name_ends < number_starts


def test_what_not_to_quantize_leads_to_its_numbers(visit):
    page = visit(420)
    advice = page.locator("#deploy .in-vain")
    assert advice.count() == 1 and "Do not quantize this one" in advice.text_content()
    advice.get_by_role("link").click()
    assert page.evaluate("location.hash") == "#int8"
    verdicts = page.locator("#int8 .worth > tbody > tr > td:nth-child(2)").all_text_contents()
    assert sorted(set(verdicts)) == ["do not quantize", "quantize", "undecided"]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_verdicts_on_quantizing_have_colours_and_marks_of_their_own(visit, scheme):
    page = visit(scheme=scheme)
    looks = page.evaluate(
        """[...document.querySelectorAll("#int8 .worth > tbody > tr > td:nth-child(2) > span")]
            .map((span) => [span.textContent, getComputedStyle(span).color,
                getComputedStyle(span, "::before").content.slice(1, 2)].join("|"))"""
    )
    words, colours, marks = (
        set(parts) for parts in zip(*(one.split("|") for one in set(looks)), strict=True)
    )
    assert len(words) == len(colours) == len(marks) == len(set(looks)) == 3


def test_the_keyboard_opens_what_the_other_quantized_variants_came_to(visit):
    page = visit(375)
    others = page.locator("#int8 .worth details").first
    told = others.get_by_text("collapsed: one answer")
    assert not told.is_visible()
    others.locator("summary").focus()
    page.keyboard.press("Enter")
    assert told.is_visible()
    assert page.evaluate("document.documentElement.scrollWidth") <= 375


def test_noisy_beside_a_recommendation_leads_to_the_remedy(visit):
    page = visit()
    page.locator("#deploy").get_by_role("link", name="noisy").click()
    assert page.locator("#steady").is_visible()
    assert page.evaluate("location.hash") == "#steady"


def test_print_shows_the_reasons_and_the_whole_table(visit):
    page = visit(1050)
    page.emulate_media(media="print")
    reasons = page.locator(".remarks li")
    assert reasons.count() > 9
    assert all(reasons.nth(index).is_visible() for index in range(reasons.count()))
    assert page.locator("table.sortable").evaluate("node => node.scrollWidth") <= 1050
    page.set_viewport_size({"width": 700, "height": 900})
    for table in page.locator("table.answers").all():
        assert table.evaluate("node => node.scrollWidth") <= 700


def test_sorting_by_status_brings_marked_rows_together(visit):
    page = visit()
    page.get_by_role("button", name="Status").click()
    values = column(page, "Status")
    assert values == sorted(values)
    assert {"ok", "ok noisy", "failed"} <= set(values)


def test_without_javascript_numbers_and_reasons_are_there(browser, report):
    context = browser.new_context(java_script_enabled=False, offline=True)
    page = context.new_page()
    page.goto(report.as_uri())
    assert page.locator("#traffic tbody tr").count() > 12
    page.locator("#results .remarks summary").first.click()
    assert page.locator("#results .remarks li").first.is_visible()
    context.close()
