"""Builds of the same engine in the DAG: made from the build's own inputs, timed and deleted."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from artifact_files import without_digests
from tightrope.records.builds import BuildsRecord
from tightrope.summary.document import read_summary
from tiny_project import MODEL, ROUNDS, Project

OPENVINO, ONNXRUNTIME = "cpu-openvino-int8-nncf-8", "cpu-onnxruntime-int8-minmax-8"
REPORT = {"summarize/summarize", "render_report/render_report"}
BUILDS = {"variants": [OPENVINO], "count": 3}


def measured(*variants: str) -> set[str]:
    return {f"measure_builds/{MODEL}-{variant}" for variant in variants} | REPORT


def path(variant: str) -> str:
    return f"reports/{MODEL}/{variant}.builds.json"


@pytest.fixture(scope="module")
def rebuilt(finished: Project, tmp_path_factory: pytest.TempPathFactory) -> Project:
    """A project after a run in which one variant was built three times more."""
    project = finished.copy(tmp_path_factory.mktemp("builds") / "project")
    project.configure(builds=BUILDS)
    assert project.run() == measured(OPENVINO)
    return project


@pytest.fixture
def project(rebuilt: Project, copied: Callable[[Project], Project]) -> Project:
    return copied(rebuilt)


def engine(project: Project, variant: str) -> dict[str, Any]:
    return json.loads((project / f"artifacts/{MODEL}/engines/{variant}/engine.json").read_text())


def test_every_build_is_like_that_of_the_rule_and_in_every_round(rebuilt: Project) -> None:
    found = BuildsRecord.read(rebuilt / path(OPENVINO))
    assert (found.status, found.reason) == ("ok", None)
    assert found.shape == {"batch": 1, "sequence": 8}
    manifest = engine(rebuilt, OPENVINO)
    assert found.options == manifest["options"]
    size = sum(file["size_bytes"] for file in manifest["files"].values())
    for build in found.builds:
        assert build["size_bytes"] == pytest.approx(size, rel=0.01)
        assert build["build_s"] > 0
    # every round counts: no time may be lost to other load
    assert (len(found.builds), len(found.rounds)) == (3, ROUNDS)
    assert all(len(one["blocks_s"]) == 3 and all(one["blocks_s"]) for one in found.rounds)


def test_the_builds_are_deleted(rebuilt: Project) -> None:
    assert not list((rebuilt / f"artifacts/{MODEL}/work").glob("builds.*"))


def test_summary_and_report_show_it(rebuilt: Project) -> None:
    summary: Any = json.loads((rebuilt / "reports/summary.json").read_text())
    assert read_summary(rebuilt / "reports/summary.json") == without_digests(summary)
    (entry,) = summary["builds"]
    assert (entry["variant"], entry["status"]) == (OPENVINO, "ok")
    assert [one["over_median"] is None for one in entry["builds"]].count(True) == 1
    assert entry["spread"]["ratio"] >= 1
    assert '<section id="builds">' in (rebuilt / "reports/summary.html").read_text()


def test_nothing_is_planned_after_it(rebuilt: Project) -> None:
    assert rebuilt.plan() == set()


def test_one_more_variant_plans_that_variant_alone(project: Project) -> None:
    project.configure(builds={**BUILDS, "variants": [OPENVINO, ONNXRUNTIME]})
    assert project.plan() == measured(ONNXRUNTIME)


def test_another_number_of_builds_plans_the_builds_alone(project: Project) -> None:
    project.configure(builds={**BUILDS, "count": 4})
    assert project.plan() == measured(OPENVINO)
