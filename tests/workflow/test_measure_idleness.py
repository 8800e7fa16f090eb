"""First calls after a pause in the DAG: only what is asked for is measured, and reported."""

import json
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from artifact_files import without_digests
from tightrope.records.idleness import IdlenessRecord
from tightrope.summary.document import read_summary
from tiny_project import MODEL, Project

OPENVINO, ONNXRUNTIME = "cpu-openvino-fp32", "cpu-onnxruntime-int8-minmax-8"
REPORT = {"summarize/summarize", "render_report/render_report"}
IDLENESS = {"variants": [OPENVINO], "pauses": [0.01, 0.05]}


def measured(*variants: str) -> set[str]:
    return {f"measure_idleness/{MODEL}-{variant}" for variant in variants} | REPORT


@pytest.fixture(scope="module")
def paused(finished: Project, tmp_path_factory: pytest.TempPathFactory) -> Project:
    """A project after a run with the first calls of one variant after pauses."""
    project = finished.copy(tmp_path_factory.mktemp("idleness") / "project")
    project.configure(idleness=IDLENESS)
    assert project.run() == measured(OPENVINO)
    return project


@pytest.fixture
def project(paused: Project, copied: Callable[[Project], Project]) -> Project:
    return copied(paused)


def test_the_record_has_the_calls_after_each_pause_at_the_first_shape(paused: Project) -> None:
    found = IdlenessRecord.read(paused / f"reports/{MODEL}/{OPENVINO}.idleness.json")
    assert (found.status, found.reason) == ("ok", None)
    assert found.shape == {"batch": 1, "sequence": 8}
    # every call counts: no time may be lost to other load
    assert Counter(call["pause_s"] for call in found.calls) == {0.01: 30, 0.05: 30}
    for call in found.calls:
        assert call["paused_s"] >= call["pause_s"]
        assert call["call_s"] > 0 and min(call["block_s"]) > 0


def test_summary_and_report_show_it(paused: Project) -> None:
    summary: Any = json.loads((paused / "reports/summary.json").read_text())
    assert read_summary(paused / "reports/summary.json") == without_digests(summary)
    (entry,) = summary["idleness"]
    assert (entry["variant"], entry["status"]) == (OPENVINO, "ok")
    assert [pause["pause_s"] for pause in entry["pauses"]] == [0.01, 0.05]
    assert all(pause["slowdown"]["ratio"] > 0 for pause in entry["pauses"])
    assert '<section id="idleness">' in (paused / "reports/summary.html").read_text()


def test_nothing_is_planned_after_it(paused: Project) -> None:
    assert paused.plan() == set()


def test_one_more_variant_plans_that_variant_alone(project: Project) -> None:
    project.configure(idleness={**IDLENESS, "variants": [OPENVINO, ONNXRUNTIME]})
    assert project.plan() == measured(ONNXRUNTIME)


def test_another_shape_plans_the_pauses_alone(project: Project) -> None:
    project.configure(idleness={**IDLENESS, "shape": {"batch": 2, "sequence": 8}})
    assert project.plan() == measured(OPENVINO)


def test_a_variant_that_is_not_configured_is_named_with_the_nearest(project: Project) -> None:
    project.configure(idleness={**IDLENESS, "variants": ["cpu-openvino-fp23"]})
    done = project.snakemake("--dry-run")
    assert done.returncode != 0
    assert "idleness.variants: cpu-openvino-fp23: no configured variant" in done.stdout
