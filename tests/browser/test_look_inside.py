"""The report's look inside the ONNX files, in a browser that has no network."""

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from artifact_files import written
from page_parts import PARTS
from tightrope.artifacts.failures import write_failure
from tightrope.jobs.child import Limits
from tightrope.report.graphs.render import render_graph
from tightrope.report.page import render_page
from tiny_model import TinyModel

playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
CHROMIUM = shutil.which("chromium")
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no chromium on the PATH")

ROOT = Path(__file__).parents[2]
LIMITS = Limits(memory_bytes=4e9, seconds=60)
LAYER = "bert.encoder.layer"


@pytest.fixture(scope="module")
def report(tiny: TinyModel, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A report with three graphs of a model, one of them with bars, and one that failed."""
    folder = tmp_path_factory.mktemp("reports")
    costs = folder / "costs.json"
    row = {"batch": 16, "sequence": 128, "float_s": 3.0, "int8_s": 1.0}
    names = [f"{LAYER}.{number}.output.dense" for number in (0, 1)]
    written(costs, {"host": "h", "operators": {name: [row] for name in names}})
    graphs = folder / "tiny/graphs"
    sources = {"exported": tiny.onnx, "simplified": tiny.simplified, "u8s8-minmax-8": tiny.u8s8}
    for name, source in sources.items():
        files = [graphs / f"{name}.{kind}" for kind in ("json", "svg", "onnx")]
        known = costs if name == "simplified" else None
        render_graph(source, known, *files, title=f"tiny {name}", limits=LIMITS)
    write_failure(graphs / "s8s8-minmax-8.json", reason="not quantized: <b>", transient=False)
    records = [graphs / f"{name}.json" for name in (*sources, "s8s8-minmax-8")]
    target = folder / "summary.html"
    summary = folder / "summary.json"
    written(summary, {"schema": 3, "results": []})  # no chart, which takes its time
    render_page(summary, target, graphs=records, **PARTS)
    return target


@pytest.fixture(scope="module")
def visit(report: Path) -> Iterator[Callable]:
    with playwright.sync_playwright() as runner:
        browser = runner.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])

        def opened(width: int = 1400, scheme: str = "light"):
            size = {"width": width, "height": 900}
            page = browser.new_context(viewport=size, color_scheme=scheme, offline=True).new_page()
            page.goto(report.as_uri())
            for one in page.locator("#inside summary").all():
                one.click()
            return page

        yield opened
        browser.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 800, 1400])
def test_no_text_reaches_out_of_its_chip_or_its_picture(visit, width, scheme):
    page = visit(width, scheme)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    shown = page.locator("#inside svg:visible")
    assert shown.count() == 3
    outside = page.evaluate(
        """() => {
            const out = (one, frame) => one.left < frame.left - 1 || one.right > frame.right + 1;
            const found = [];
            for (const svg of document.querySelectorAll("#inside svg")) {
                if (!svg.checkVisibility()) continue;
                const frame = svg.getBoundingClientRect();
                for (const text of svg.querySelectorAll("text"))
                    if (out(text.getBoundingClientRect(), frame)) found.push(text.textContent);
                for (const chip of svg.querySelectorAll("g:has(> title)")) {
                    const edge = chip.querySelector("rect").getBoundingClientRect();
                    if (out(chip.querySelector("text").getBoundingClientRect(), edge))
                        found.push(chip.textContent);
                }
            }
            return found;
        }"""
    )
    assert outside == []


@pytest.mark.parametrize("width", [390, 1400])
def test_letters_are_large_enough_to_read(visit, width):
    heights = visit(width).evaluate(
        """() => [...document.querySelectorAll("#inside svg text")]
            .filter((text) => text.checkVisibility() && text.textContent)
            .map((text) => text.getBoundingClientRect().height)"""
    )
    assert len(heights) > 100 and min(heights) >= 11


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_products_in_int8_have_another_colour_than_those_in_float(visit, scheme):
    page = visit(scheme=scheme)

    def colour(kind):
        marks = page.locator(f"#inside .wide svg .{kind} > .mark")
        return marks.first.evaluate("node => getComputedStyle(node).fill")

    assert colour("int8") != colour("fp32")


def test_a_link_leads_to_the_file_for_netron_and_the_command_names_it(visit, report):
    page = visit()
    links = page.locator("#inside a[download]")
    paths = [report.parent / one.get_attribute("href") for one in links.all()]
    assert len(paths) == 3 and all(path.is_file() for path in paths)
    command = "make netron MODEL=tiny GRAPH=u8s8-minmax-8"
    assert page.locator("#inside").get_by_text(command).count() == 1


def test_a_graph_that_was_not_drawn_says_why(visit):
    section = visit().locator("#inside")
    assert section.get_by_text("not quantized: <b>").is_visible()
    assert section.get_by_text("not drawn", exact=True).is_visible()


def test_the_navigation_leads_there_and_bars_are_explained(visit):
    page = visit()
    page.get_by_role("navigation").get_by_role("link", name="Look inside").click()
    assert page.evaluate("location.hash") == "#inside"
    words = page.locator("#inside .wide svg").nth(1).text_content()
    assert "each timed alone in ONNX Runtime; batch 16, sequence 128" in words
    assert words.count("50 % of the time") == 2
