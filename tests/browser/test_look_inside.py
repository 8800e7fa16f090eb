"""The report's look inside the ONNX files, in a browser that has no network."""

from collections.abc import Callable
from pathlib import Path

import pytest
from artifact_files import written
from page_parts import PARTS
from report_pages import empty
from tightrope.artifacts.failures import write_failure
from tightrope.jobs.child import Limits
from tightrope.report.graphs.describe import describe_graph
from tightrope.report.page import render_page
from tightrope.summary.document import Summary
from tiny_model import TinyModel

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
        files = [graphs / f"{name}.{kind}" for kind in ("json", "onnx")]
        known = costs if name == "simplified" else None
        describe_graph(source, known, *files, title=f"tiny {name}", limits=LIMITS)
    write_failure(graphs / "s8s8-minmax-8.json", reason="not quantized: <b>", transient=False)
    records = [graphs / f"{name}.json" for name in (*sources, "s8s8-minmax-8")]
    target, summary = folder / "summary.html", folder / "summary.json"
    written(summary, empty(Summary))  # no chart, which takes its time
    render_page(summary, target, graphs=records, **PARTS)
    return target


@pytest.fixture(scope="module")
def visit(open_page, report: Path) -> Callable:
    def opened(width: int = 1400):
        page = open_page(report, width)
        for one in page.locator("#inside .inside > summary").all():
            one.click()
        return page

    return opened


@pytest.mark.parametrize("width", [390, 1400])
def test_the_tables_fit_the_page_and_have_a_bar_for_each_time(visit, width):
    page = visit(width)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    tables = page.locator("#inside table")
    assert tables.count() == 3
    assert tables.nth(1).locator("td.bar").all_inner_texts().count("50") == 2
    words = page.locator("#inside").inner_text()
    assert "each timed alone in ONNX Runtime at batch 16, sequence 128" in words
    formats = [tables.nth(place).inner_text() for place in (1, 2)]
    assert "fp32" in formats[0] and "int8" in formats[1]


def test_a_link_leads_to_the_file_for_netron(visit, report):
    page = visit()
    links = page.locator("#inside a[download]")
    paths = [report.parent / one.get_attribute("href") for one in links.all()]
    assert len(paths) == 3 and all(path.is_file() for path in paths)


def test_a_graph_that_was_not_read_says_why(visit):
    section = visit().locator("#inside")
    assert section.get_by_text("not quantized: <b>").is_visible()
    assert section.get_by_text("not read", exact=True).is_visible()
