"""A failed variant is a record and ends no run; strict, retry_failed and retries say the rest."""

import json
import re
import struct
from collections.abc import Callable
from typing import Any

import pytest
from programs import printed_in
from tiny_project import MODEL, Project, builds_of, drawn, measurements_of

BASELINE, PLAIN = "cpu-onnxruntime-fp32", "cpu-onnxruntime-int8-minmax-8"
FP32, BF16, INT8 = "cpu-openvino-fp32", "cpu-openvino-bf16", "cpu-openvino-int8-nncf-8"
BUILD = "def build(\n    source: Path,"
# An engine that does what the file `orders.json` says for the precision that it builds.
DISOBEDIENT = """
def build(source, target, *, precision, device, threads, options, samples=None):
    import json, os, signal

    orders = Path("orders.json")
    known = json.loads(orders.read_text()) if orders.is_file() else {}
    order = known.pop(precision, None)
    if order == "raise":
        raise ValueError("the graph has an operator that is not known")
    if order == "die once":
        orders.write_text(json.dumps(known))
    if order in ("die", "die once"):
        os.kill(os.getpid(), signal.SIGKILL)
    settings = {"precision": precision, "device": device, "threads": threads, "options": options}
    facts = obedient(source, target, **settings, samples=samples)
    if order == "other type":
        facts["executed"] = {"FullyConnected": {"fp32": 13}}
    return facts


"""

# a calibration during which the machine kills the process while the file `fault` is there
KILLED = """    import os, signal

    if Path("fault").is_file():
        os.kill(os.getpid(), signal.SIGKILL)
"""


def order(project: Project, **orders: str) -> None:
    (project / "orders.json").write_text(json.dumps(orders))


def engine(project: Project, variant: str) -> dict[str, Any]:
    return project.read(f"artifacts/{MODEL}/engines/{variant}/engine.json")


# of the calibration that is killed, and of the builds that fail
AFFECTED = {
    *(f"calibrate/{MODEL}-minmax-8", f"quantize_onnx/{MODEL}-u8s8-minmax-8"),
    *drawn("u8s8-minmax-8"),
    *builds_of(PLAIN, FP32, BF16, INT8),
    *measurements_of(PLAIN, FP32, BF16, INT8),
}


@pytest.fixture(scope="module")
def failed(finished_onnx: Project, tmp_path_factory: pytest.TempPathFactory) -> Project:
    """A project after a run in which all but the baseline failed, each in a way of its own."""
    project = finished_onnx.copy(tmp_path_factory.mktemp("failed") / "project")
    path = "scripts/tightrope/engines/openvino.py"
    project.edit(path, BUILD, f"{DISOBEDIENT.lstrip()}{BUILD.replace('build', 'obedient')}")
    order(project, fp32="raise", bf16="die", int8="other type")
    line = "    model = load_onnx(onnx_path)\n    axes"
    project.edit("scripts/tightrope/int8/ranges.py", line, KILLED + line)
    (project / "fault").touch()
    done = project.snakemake("--retries", "1")
    # the code of that one has changed too
    assert project.jobs(done) == AFFECTED | {f"calibrate/{MODEL}-nncf-8"}
    # of the calibration and of bf16
    assert done.stdout.count("another attempt follows") == 2
    told = rf"^\[.*  build openvino +{MODEL}/{FP32}\n +failed: ValueError: the graph has an op"
    assert re.search(told, done.stdout, re.MULTILINE), done.stdout
    return project


@pytest.fixture
def project(failed: Project, copied: Callable[[Project], Project]) -> Project:
    return copied(failed)


@pytest.mark.parametrize(
    ("variant", "reason", "transient"),
    [
        (FP32, "ValueError: the graph has an operator that is not known", False),
        (BF16, "killed by SIGKILL (out of memory, or from outside)", True),
        (PLAIN, "not calibrated: killed by SIGKILL (out of memory, or from outside)", False),
        (INT8, "ran in fp32: no matrix product ran in int8", False),
    ],
)
def test_a_failed_build_has_its_reason_in_every_file(failed, variant, reason, transient) -> None:
    built = engine(failed, variant)
    facts = (built["status"], built["reason"], built["transient"])
    assert facts == ("failed", reason, transient)
    assert list((failed / f"artifacts/{MODEL}/engines/{variant}").iterdir()) == [
        failed / f"artifacts/{MODEL}/engines/{variant}/engine.json"
    ]
    for kind in ("latency", "accuracy"):
        record = failed.read(f"reports/{MODEL}/{variant}.{kind}.json")
        assert (record["status"], record["reason"]) == ("failed", f"not built: {reason}")
    result = failed.results()[variant]
    assert result["status"] == "failed"
    assert reason in result["reason"]
    assert reason in (failed / "reports/summary.html").read_text()
    assert reason in (failed / "reports/summary.csv").read_text()


def test_the_baseline_is_what_it_was(failed: Project, finished_onnx: Project) -> None:
    assert [name for name, status in failed.statuses().items() if status == "ok"] == [BASELINE]
    now, before = (one.results()[BASELINE]["accuracy"] for one in (failed, finished_onnx))
    assert now == before


def test_a_recorded_failure_is_not_tried_again_unasked(failed: Project) -> None:
    assert failed.plan() == set()


def test_strict_ends_with_an_error_after_the_report_was_written(project: Project) -> None:
    words = ("--config", "strict=true", "accuracy_budget_points=2")
    before = (project / "reports/summary.html").read_bytes()
    done = project.snakemake(*words)
    assert done.returncode == 1
    assert (project / "reports/summary.html").read_bytes() != before
    assert "with a failed record" not in done.stdout
    assert "Report: reports/summary.html" in done.stdout
    again = project.snakemake(*words)
    assert again.returncode == 1
    assert "Nothing to be done" in again.stdout
    for output in (done.stdout, again.stdout):
        (line,) = [line for line in output.splitlines() if line.startswith("strict: ")]
        assert line.startswith("strict: 4 failed: ")
        assert f"{MODEL}/{BF16}: not built: killed by SIGKILL" in line
        assert "Traceback" not in output
    assert project.snakemake("--dry-run", *words).returncode == 0


@pytest.mark.parametrize("word", ["-n", "--unlock", "--summary"])
def test_retry_failed_deletes_nothing_where_no_job_is_run(failed: Project, word: str) -> None:
    before = failed.files()
    done = failed.snakemake(word, "--config", "retry_failed=true")
    assert done.returncode == 0, done.stdout
    assert failed.files() == before


def test_retry_failed_tries_exactly_the_failed_ones_with_as_many_attempts_as_retries_say(project):
    cache = project.read(f"artifacts/{MODEL}/calibration/minmax-8.json")
    assert (cache["status"], cache["transient"]) == ("failed", True)
    order(project, fp32="die once", bf16="die")
    (project / "fault").unlink()
    done = project.snakemake("--retries", "1", "--config", "retry_failed=true")
    assert project.jobs(done) == AFFECTED
    assert done.stdout.count("another attempt follows") >= 2
    for variant in (FP32, INT8, PLAIN):
        assert engine(project, variant)["status"] == "ok"
        assert project.results()[variant]["status"] == "ok"
    assert engine(project, BF16)["status"] == "failed"
    assert "killed by SIGKILL" in project.results()[BF16]["reason"]


# repairs of which one names an operator that there is not
REPAIRS = {"good": {"smoothquant": 0.5}, "bad": {"float": ["no.such.operator"]}}
AUTO = "cpu-onnxruntime-int8-auto-minmax-8"
SETTINGS = {
    "engines": {"onnxruntime": ["int8", "int8-auto"], "openvino": ["int8"]},
    "accuracy_budget_points": 50.0,  # what a pool of 32 can tell
    "sensitivity_samples": 8,
}


@pytest.fixture(scope="module")
def repaired(finished_onnx: Project, tmp_path_factory: pytest.TempPathFactory) -> Project:
    """A project after a run with a repair that cannot be and a search that goes wrong."""
    project = finished_onnx.copy(tmp_path_factory.mktemp("repaired") / "project")
    line = "    require_enough("
    faulty = f'    raise ValueError("the search went wrong")\n{line}'
    project.edit("scripts/tightrope/int8/search.py", line, faulty)
    project.configure(**SETTINGS, repairs=REPAIRS)
    project.run()
    return project


@pytest.mark.parametrize(
    ("variant", "reason"),
    [
        (f"{PLAIN}-bad", "not quantized: artifacts/tiny/model.simplified.onnx: no "),
        (AUTO, "not searched: ValueError: the search went wrong"),
    ],
)
def test_what_cannot_be_quantized_fails_its_variant_alone(repaired, variant, reason) -> None:
    failed = {name for name, status in repaired.statuses().items() if status != "ok"}
    assert failed == {f"{PLAIN}-bad", AUTO}
    built = engine(repaired, variant)
    assert (built["status"], built["transient"]) == ("failed", False)
    assert built["reason"].startswith(reason)
    assert "\n" not in built["reason"]
    assert repaired.results()[variant]["reason"] == f"not built: {built['reason']}"
    assert repaired.results()[variant]["search"] is None
    assert built["reason"][:60] in (repaired / "reports/summary.html").read_text()
    assert repaired.plan() == set()


def test_a_collapse_is_a_failure_with_its_operator_and_no_time_is_measured(finished_onnx, copied):
    """The cache comes from elsewhere, with scales a thousand times too large."""
    project = copied(finished_onnx)
    cache, text = project / f"artifacts/{MODEL}/calibration/minmax-8.json", project / "bad.cache"
    onnx = f"artifacts/{MODEL}/model.simplified.onnx"
    ranges = json.loads(cache.read_text())["ranges"]
    lines = ["TRT-8601-MinMaxCalibration"] + [
        f"{name}: {struct.pack('>f', 1000 * max(map(abs, pair)) / 127).hex()}"
        for name, pair in ranges.items()
    ]
    text.write_text("\n".join(lines) + "\n")
    words = ("tools/tensorrt_cache.py", "import", text, onnx, cache, "--force")
    printed_in(project.folder, *words)
    done = project.snakemake()
    assert done.returncode == 0, done.stdout
    found = project.results()[PLAIN]
    assert (found["status"], found["latency"]) == ("failed", [])
    assert found["reason"].startswith("collapsed: ")
    assert "at fault: operator bert." in found["reason"]
    assert "of 256 levels" in found["reason"]
    assert found["accuracy"]["samples"] == 40
    assert f"1 failed, the report says why: {MODEL}/{PLAIN}" in done.stdout
    record = f"reports/{MODEL}/{PLAIN}.accuracy.json"
    judged = project.read(record)
    assert len(judged["collapsed"]["tensors"]) > 1
    assert project.results()[INT8]["status"] == "ok"
    timed = f"measure_latency/{MODEL}-{PLAIN}"
    assert timed not in project.plan()
    project.rewrite(record, judged | {"collapsed": None})
    assert timed in project.plan(), "by more examples it has not collapsed after all"
