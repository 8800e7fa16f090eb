"""Calibration, repairs, int8-auto and the audit: what is planned, and what a collapse does."""

import json
import struct
import subprocess
import sys
from pathlib import Path

import pytest
from tightrope.summary.cost import job_seconds
from tightrope.summary.document import read_summary
from tiny_project import CONFIG, MODEL, RACE, Project, drawn

FOLDER = f"artifacts/{MODEL}"
REPORT = {"summarize/summarize", "render_report/render_report"}
ENGINES = {"onnxruntime": ["int8", "int8-auto"]}
CALIBRATION = {**CONFIG["calibration"], "methods": ["minmax", "percentile"]}
SETTINGS = {
    "engines": ENGINES,
    "calibration": CALIBRATION,
    "accuracy_budget_points": 20.0,
    "sensitivity_samples": 8,
}


@pytest.fixture(scope="module")
def int8(finished_onnx: Project, tmp_path_factory: pytest.TempPathFactory) -> Project:
    """A project with int8 and int8-auto by two methods after a whole run; to be copied."""
    project = finished_onnx.copy(tmp_path_factory.mktemp("int8") / "project")
    project.configure(**SETTINGS)
    project.run()
    return project


@pytest.fixture
def project(int8: Project, copied) -> Project:
    return copied(int8)


def engine_chain(variant: str) -> set[str]:
    device, engine, rest = variant.split("-", 2)
    jobs = ("audit_variant", "measure_latency", "measure_accuracy")
    timed = {f"{job}/{MODEL}-{variant}" for job in jobs}
    return {f"build_{engine}/{MODEL}-{device}-{rest}"} | timed | RACE


def plain_chain(calibration: str) -> set[str]:
    quantized = {f"quantize_onnx/{MODEL}-u8s8-{calibration}"}
    return quantized | engine_chain(f"cpu-onnxruntime-int8-{calibration}")


def auto_chain(calibration: str) -> set[str]:
    """From the search on."""
    return {
        f"search_operators/{MODEL}-u8s8-{calibration}",
        f"quantize_onnx/{MODEL}-u8s8-{calibration}-auto",
        *engine_chain(f"cpu-onnxruntime-int8-auto-{calibration}"),
        *drawn(f"u8s8-{calibration}-auto"),
    }


def whole_chain(calibration: str) -> set[str]:
    first = {f"calibrate/{MODEL}-{calibration}", f"measure_costs/{MODEL}-u8s8-{calibration}"}
    return first | plain_chain(calibration) | auto_chain(calibration)


def results(project: Project) -> dict[str, dict]:
    summary = read_summary(project / "reports/summary.json")
    return {result["variant"]: result for result in summary["results"]}


def test_every_variant_is_measured_and_the_search_keeps_its_path(int8: Project) -> None:
    assert int8.plan() == set()
    assert {one["status"] for one in results(int8).values()} == {"ok"}
    assert len(results(int8)) == 5
    search = json.loads((int8 / f"{FOLDER}/search/u8s8-minmax-8.json").read_text())
    assert search["samples"] == 32
    held = [one["in_float"] for one in search["trials"] if one["verdict"] == "kept"]
    assert held[-1] == search["in_float"]
    log = int8.log(f"calibrate/{MODEL}-percentile-8")
    assert "ranges: 100%" in log
    assert "histograms: 100%" in log


@pytest.mark.parametrize(
    "path",
    [
        "calibration/minmax-8.tsv",
        "quantized/u8s8-minmax-8-auto.tsv",
        "costs/u8s8-minmax-8.tsv",
    ],
)
def test_each_job_before_a_build_leaves_its_seconds(int8: Project, path: str) -> None:
    seconds = job_seconds(str(int8 / FOLDER / path))
    assert seconds is not None
    assert seconds > 0


def test_a_new_method_plans_its_own_chain_and_keeps_the_files_of_the_others(
    project: Project,
) -> None:
    before = {path: (project / path).stat().st_mtime_ns for path in project.files()}
    methods = ["minmax", "percentile", "entropy"]
    project.configure(**{**SETTINGS, "calibration": {**CALIBRATION, "methods": methods}})
    assert project.plan() == whole_chain("entropy-8") | REPORT
    assert project.run("--", f"{FOLDER}/calibration/entropy-8.json") == {
        f"calibrate/{MODEL}-entropy-8"
    }
    kept = [path for path in before if path.startswith(f"{FOLDER}/")]
    assert all((project / path).stat().st_mtime_ns == before[path] for path in kept)


def test_another_percentile_plans_the_chain_of_percentile_alone(project: Project) -> None:
    project.configure(**{**SETTINGS, "calibration": {**CALIBRATION, "percentile": 99.0}})
    assert project.plan() == whole_chain("percentile-8") | REPORT


def test_a_repair_plans_one_more_variant_for_each_calibration(project: Project) -> None:
    project.configure(**SETTINGS, repairs={"smooth": {"smoothquant": 0.5}})
    expected = plain_chain("minmax-8-smooth") | plain_chain("percentile-8-smooth")
    expected |= drawn("u8s8-minmax-8-smooth")
    assert project.plan() == expected | REPORT
    quantized = f"{FOLDER}/quantized/u8s8-minmax-8-smooth.onnx"
    assert project.run("--", quantized) == {f"quantize_onnx/{MODEL}-u8s8-minmax-8-smooth"}
    project.configure(**SETTINGS, repairs={"smooth": {"smoothquant": 0.7}})
    assert project.plan() == expected | REPORT


def test_another_budget_searches_again_and_measures_nothing_of_plain_int8(
    project: Project,
) -> None:
    project.configure(**{**SETTINGS, "accuracy_budget_points": 30.0})
    assert project.plan() == auto_chain("minmax-8") | auto_chain("percentile-8") | REPORT


def test_another_machine_measures_costs_again_but_calibrates_quantizes_and_searches_not(
    project: Project,
) -> None:
    planned = project.plan("--config", "host=other-node")
    assert not {job for job in planned if job.startswith(("calibrate", "quantize", "search"))}
    auto = engine_chain("cpu-onnxruntime-int8-auto-minmax-8")
    assert {f"measure_costs/{MODEL}-u8s8-minmax-8", *auto} <= planned


def test_a_collapse_is_a_failure_with_its_operator_and_no_time_is_measured(
    project: Project,
) -> None:
    """The cache comes from elsewhere, with scales a thousand times too large."""
    cache, text = project / f"{FOLDER}/calibration/minmax-8.json", project / "bad.cache"
    onnx = f"{FOLDER}/model.simplified.onnx"
    ranges = json.loads(cache.read_text())["ranges"]
    lines = ["TRT-8601-MinMaxCalibration"] + [
        f"{name}: {struct.pack('>f', 1000 * max(map(abs, pair)) / 127).hex()}"
        for name, pair in ranges.items()
    ]
    text.write_text("\n".join(lines) + "\n")
    tool = [sys.executable, "tools/tensorrt_cache.py", "import", str(text), onnx, str(cache)]
    subprocess.run([*tool, "--force"], cwd=project.folder, check=True)
    project.configure(**{**SETTINGS, "engines": {"onnxruntime": ["int8"]}})
    done = project.snakemake()
    assert done.returncode == 0, done.stdout
    found = results(project)["cpu-onnxruntime-int8-minmax-8"]
    assert (found["status"], found["latency"]) == ("failed", [])
    assert found["reason"].startswith("collapsed: ")
    assert "at fault: operator bert." in found["reason"]
    assert "of 256 levels" in found["reason"]
    assert found["accuracy"]["samples"] == 40
    assert f"1 failed, the report says why: {MODEL}/cpu-onnxruntime-int8-minmax-8" in done.stdout
    audit = json.loads(
        Path(project / f"{FOLDER}/audit/cpu-onnxruntime-int8-minmax-8.json").read_text()
    )
    assert audit["status"] == "collapsed"
    assert results(project)["cpu-onnxruntime-int8-percentile-8"]["status"] == "ok"
