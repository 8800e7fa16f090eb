"""A profile's file names the variant; peaks and what goes around a call are measured once."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tiny_project import MODEL, Project

OPENVINO, ONNXRUNTIME = "cpu-openvino-fp32", "cpu-onnxruntime-int8-minmax-8"
PROFILED = (OPENVINO, ONNXRUNTIME, "cpu-pytorch-fp32")
REQUESTS = {f"measure_requests/{MODEL}-cpu"}
PEAKS = {"measure_peaks/cpu"}
SHARED = REQUESTS | PEAKS


def path(variant: str) -> str:
    return f"reports/{MODEL}/{variant}.profile.json"


def jobs(*variants: str) -> set[str]:
    return {f"measure_profile/{MODEL}-{variant}" for variant in variants}


@pytest.fixture(scope="module")
def profiled(finished: Project, tmp_path_factory: pytest.TempPathFactory) -> Project:
    """A project in which three variants were profiled."""
    project = finished.copy(tmp_path_factory.mktemp("profile") / "project")
    assert project.run(*map(path, PROFILED)) == jobs(*PROFILED) | SHARED
    return project


@pytest.fixture
def project(profiled: Project, copied: Callable[[Project], Project]) -> Project:
    return copied(profiled)


def record(project: Project, variant: str) -> dict[str, Any]:
    return json.loads((project / path(variant)).read_text())


@pytest.mark.parametrize("variant", PROFILED)
def test_a_profile_says_where_the_time_of_each_shape_goes(profiled: Project, variant: str) -> None:
    found = record(profiled, variant)
    assert (found["status"], found["reason"], found["unprofiled"]) == ("ok", None, None)
    assert [(one["batch"], one["sequence"]) for one in found["shapes"]] == [(1, 8), (2, 8)]
    for shape in found["shapes"]:
        assert shape["bound"] in shape["shares"]
        assert sum(shape["shares"].values()) == pytest.approx(1.0)
        assert shape["groups"]["products"]["operations"] > 0
        assert {one["group"] for one in shape["operators"]} <= set(shape["groups"])
    small, large = (one["groups"]["products"]["operations"] for one in found["shapes"])
    assert small < large


@pytest.mark.parametrize("variant", PROFILED)
def test_a_profile_has_what_goes_around_a_call_and_what_the_model_takes(
    profiled: Project, variant: str
) -> None:
    small, large = record(profiled, variant)["shapes"]
    for shape in (small, large):
        assert shape["around"]["prepare_s"] > shape["around"]["finish_s"] > 0
        assert shape["model"]["groups"]["products"] <= shape["model"]["operations"]
    work = large["model"]["groups"]["products"] / small["model"]["groups"]["products"]
    assert work == pytest.approx(2)
    bits = record(profiled, ONNXRUNTIME)["shapes"][0]["model"]
    whole = record(profiled, OPENVINO)["shapes"][0]["model"]
    assert bits["operations"] == whole["operations"]
    assert bits["least_bytes"] < whole["least_bytes"]


def test_a_run_without_an_engine_from_onnx_exports_none_to_profile(
    tmp_path: Path, finished: Project
) -> None:
    project = finished.copy(tmp_path / "project")
    project.configure(engines={"torchscript": ["fp32"]})
    for name in ("model.onnx", "model.simplified.onnx"):
        (project / f"artifacts/{MODEL}/{name}").unlink()
    asked = "cpu-pytorch-fp32"
    assert project.plan(path(asked)) == jobs(asked) | SHARED
    assert project.run(path(asked)) == jobs(asked) | SHARED
    assert "model" not in record(project, asked)["shapes"][0]


def test_peaks_are_positive_and_name_the_machine(profiled: Project) -> None:
    found = json.loads((profiled / "artifacts/machine/cpu.peaks.json").read_text())
    # bf16 where this CPU has products in it
    assert set(found["peaks"]["operations_per_s"]) - {"bf16"} == {"fp32", "int8"}
    assert found["peaks"]["copy_bytes_per_s"] > 0
    assert found["host"] == record(profiled, OPENVINO)["host"]


def test_a_second_run_measures_nothing(project: Project) -> None:
    assert project.run(*map(path, PROFILED)) == set()


def test_another_shape_profiles_again_and_measures_no_peak(project: Project) -> None:
    project.configure(shapes=[{"batch": 1, "sequence": 8}])
    planned = project.plan(path(OPENVINO))
    assert jobs(OPENVINO) | REQUESTS <= planned
    assert not PEAKS & planned


def test_configured_profiles_and_verified_causes_are_in_the_summary_and_the_report(
    project: Project,
) -> None:
    project.configure(profile={"variants": [OPENVINO]}, explain="verify")
    verified = f"verify_causes/{MODEL}-{OPENVINO}"
    assert project.run() == {"summarize/summarize", "render_report/render_report", verified}
    summary = json.loads((project / "reports/summary.json").read_text())
    (entry,) = summary["profiles"]
    assert (entry["variant"], len(entry["shapes"])) == (OPENVINO, 2)
    for call in entry["shapes"]:
        assert call["ceiling"] > 1
        assert 0 < call["roofline"]["operations_per_s"] < call["roofline"]["peak_per_s"]
    (causes,) = summary["causes"]
    (padded,) = (one for one in causes["causes"] if "padding" in one["cause"])
    # two texts in a bucket of four
    assert (padded["batch"], padded["sequence"]) == (2, 8)
    assert padded["saved"] is not None or padded["disturbed"]
    page = (project / "reports/summary.html").read_text()
    assert all(f'<section id="{name}">' in page for name in ("profile", "causes"))
    assert project.plan() == set()


def test_a_variant_that_is_not_configured_is_named_with_the_nearest(project: Project) -> None:
    project.configure(profile={"variants": ["cpu-openvino-fp23"]})
    done = project.snakemake("--dry-run")
    assert done.returncode != 0
    assert "profile.variants: cpu-openvino-fp23: no configured variant" in done.stdout
    assert OPENVINO in done.stdout
