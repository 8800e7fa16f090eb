"""Throughput in the DAG: only what is asked for is measured, and the report shows it."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from artifact_files import without_digests
from tightrope.records.throughput import ThroughputRecord
from tightrope.summary.document import read_summary
from tiny_project import MODEL, Project

OPENVINO, ONNXRUNTIME = "cpu-openvino-fp32", "cpu-onnxruntime-int8-minmax-8"
REPORT = {"summarize/summarize", "render_report/render_report"}
THROUGHPUT = {"variants": [OPENVINO], "batches": [1, 4], "sequence": 8, "seconds": 0.2}


def measured(*variants: str) -> set[str]:
    return {f"measure_throughput/{MODEL}-{variant}" for variant in variants} | REPORT


def record(project: Project) -> ThroughputRecord:
    return ThroughputRecord.read(project / f"reports/{MODEL}/{OPENVINO}.throughput.json")


@pytest.fixture(scope="module")
def loaded(finished: Project, tmp_path_factory: pytest.TempPathFactory) -> Project:
    """A project after a run with the throughput of one variant."""
    project = finished.copy(tmp_path_factory.mktemp("throughput") / "project")
    project.configure(throughput=THROUGHPUT)
    assert project.run() == measured(OPENVINO)
    return project


@pytest.fixture
def project(loaded: Project, copied: Callable[[Project], Project]) -> Project:
    return copied(loaded)


def test_every_division_of_the_cores_has_a_point_at_every_batch(loaded: Project) -> None:
    found = record(loaded)
    assert (found.status, found.reason, found.sequence) == ("ok", None, 8)
    places = {(one["instances"], one["threads"], one["batch"]) for one in found.points}
    counts = [one for one in range(1, found.cores + 1) if found.cores % one == 0]
    expected = {(one, found.cores // one, batch) for one in counts for batch in (1, 4)}
    assert places == expected
    assert found.points[0]["reason"] is None


def test_summary_and_report_show_it(loaded: Project) -> None:
    summary: Any = json.loads((loaded / "reports/summary.json").read_text())
    assert read_summary(loaded / "reports/summary.json") == without_digests(summary)
    (entry,) = summary["throughput"]
    assert (entry["variant"], entry["status"]) == (OPENVINO, "ok")
    assert entry["best"]["samples_per_s"] > 0
    page = (loaded / "reports/summary.html").read_text()
    assert "<h2>Throughput" in page and "1 instance, " in page


def test_nothing_is_planned_after_it(loaded: Project) -> None:
    assert loaded.plan() == set()


def test_one_more_variant_plans_that_variant_alone(project: Project) -> None:
    project.configure(throughput={**THROUGHPUT, "variants": [OPENVINO, ONNXRUNTIME]})
    assert project.plan() == measured(ONNXRUNTIME)


def test_other_settings_plan_the_throughput_alone(project: Project) -> None:
    project.configure(throughput={**THROUGHPUT, "p99_ms": 50})
    assert project.plan() == measured(OPENVINO)


def test_a_changed_module_of_the_throughput_plans_the_throughput_alone(project: Project) -> None:
    path = "scripts/tightrope/measure/throughput/instances.py"
    project.edit(path, "LEAD_SECONDS = 0.2", "LEAD_SECONDS = 0.3")
    assert project.plan() == measured(OPENVINO)


def test_without_throughput_the_report_alone_is_planned(project: Project) -> None:
    project.configure()
    assert project.plan() == REPORT
