"""A padded shape that is added to a finished run is measured, raced and shown apart."""

import html
from collections.abc import Callable

import pytest
from tightrope.artifacts.files import read_json
from tiny_project import CONFIG, MODEL, ONNX_VARIANTS, Project

FULL = {"batch": 2, "sequence": 8}
PADDED = {**FULL, "tokens": 5}


def test_a_padded_shape_stands_beside_the_full_one(
    finished_onnx: Project, copied: Callable[[Project], Project]
) -> None:
    project = copied(finished_onnx)
    before = read_json(project / "reports/summary.json")
    project.configure(shapes=[*CONFIG["shapes"], PADDED])
    rules = {job.partition("/")[0] for job in project.run()}
    assert rules == {"measure_latency", "race_finalists", "summarize", "render_report"}
    summary = read_json(project / "reports/summary.json")
    shapes = [{"batch": 1, "sequence": 8}, FULL, PADDED]
    measured = [one for one in summary["results"] if one["status"] == "ok"]
    assert {one["variant"] for one in measured} <= set(ONNX_VARIANTS)
    for result in measured:
        sizes = [
            {name: row[name] for name in ("batch", "sequence", "tokens") if name in row}
            for row in result["latency"]
        ]
        assert sizes == shapes
        padded = result["latency"][2]
        assert padded["throughput_per_s"] == pytest.approx(2 / padded["mean_s"])
    for entries in ("recommendations", "races"):
        assert [one["shape"] for one in before[entries]] == shapes[:2]
        assert [one["shape"] for one in summary[entries]] == shapes
    page = html.unescape((project / "reports/summary.html").read_text()).replace("\xa0", " ")
    assert "batch 2 \N{MIDDLE DOT} 8 tokens" in page
    assert "batch 2 \N{MIDDLE DOT} 5 of 8 tokens" in page
    csv = (project / "reports/summary.csv").read_text()
    assert "latency.tokens" in csv.splitlines()[0]
    assert "latency.tokens" not in (finished_onnx / "reports/summary.csv").read_text()
    assert MODEL in csv
