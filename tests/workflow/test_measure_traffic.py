"""Real traffic in the DAG: only what is asked for is measured, and LoadGen's logs stay."""

import hashlib
import json
from collections.abc import Callable
from typing import Any

import pytest
from artifact_files import without_digests
from tightrope.summary.document import read_summary
from tiny_project import MODEL, Project

OPENVINO, ONNXRUNTIME = "cpu-openvino-fp32", "cpu-onnxruntime-int8-minmax-8"
REPORT = {"summarize/summarize", "render_report/render_report"}
TRAFFIC = {"variants": [OPENVINO], "batch": 4, "buckets": 2, "seconds": 0.2}


def measured(*variants: str) -> set[str]:
    return {f"measure_traffic/{MODEL}-{variant}" for variant in variants} | REPORT


def record(project: Project, variant: str = OPENVINO) -> dict[str, Any]:
    return json.loads((project / f"reports/{MODEL}/{variant}.traffic.json").read_text())


@pytest.fixture(scope="module")
def loaded(finished: Project, tmp_path_factory: pytest.TempPathFactory) -> Project:
    """A project after a run with one variant under traffic."""
    project = finished.copy(tmp_path_factory.mktemp("traffic") / "project")
    project.configure(traffic=TRAFFIC)
    assert project.run() == measured(OPENVINO)
    return project


@pytest.fixture
def project(loaded: Project, copied: Callable[[Project], Project]) -> Project:
    return copied(loaded)


def test_every_scenario_is_measured_with_every_padding(loaded: Project) -> None:
    found = record(loaded)
    assert found["status"] == "ok", found["reason"]
    assert {(test["name"], test["scenario"]) for test in found["tests"]} == {
        (padding, scenario)
        for padding in ("fixed", "longest", "bucketed")
        for scenario in ("single_stream", "offline", "server")
    }


def test_loadgens_own_logs_lie_beside_the_record_that_has_their_hashes(loaded: Project) -> None:
    logs = record(loaded)["logs"]
    assert len(logs) >= 9
    for path, expected in logs.items():
        content = (loaded / f"reports/{MODEL}/{path}").read_bytes()
        assert hashlib.sha256(content).hexdigest() == expected
    assert f"{OPENVINO}.traffic/fixed-offline-1/mlperf_log_summary.txt" in logs


def test_summary_and_report_show_it(loaded: Project) -> None:
    summary = json.loads((loaded / "reports/summary.json").read_text())
    assert read_summary(loaded / "reports/summary.json") == without_digests(summary)
    (entry,) = summary["traffic"]
    assert (entry["variant"], entry["status"]) == (OPENVINO, "ok")
    assert [row["padding"] for row in entry["rows"]] == ["fixed", "longest", "bucketed"]
    assert all(row["samples_per_s"] > 0 for row in entry["rows"])
    fixed, longest, bucketed = entry["rows"]
    assert fixed["gain"] == fixed["padding_gain"] == 1
    for row in (longest, bucketed):
        assert row["gain_low"] < row["gain"] < row["gain_high"]
        assert row["gain_verdict"] in ("faster", "slower", "tie")
        assert row["padding_gain"] >= 1
    assert "<h2>Under real traffic" in (loaded / "reports/summary.html").read_text()


def test_the_summary_has_the_texts_that_were_cut_of_each_split(loaded: Project) -> None:
    summary = json.loads((loaded / "reports/summary.json").read_text())
    cut = summary["models"][MODEL]["truncation"]
    data = summary["models"][MODEL]["data"]
    assert set(cut) == {"evaluation", "calibration", "train"}
    assert cut["evaluation"]["texts"] == data["evaluation_samples"]
    assert cut["train"]["texts"] == data["train_samples"]


def test_the_log_tells_how_far_the_job_is(loaded: Project) -> None:
    log = loaded / f"artifacts/logs/measure_traffic/{MODEL}-{OPENVINO}.log"
    assert "server, bucketed:" in log.read_text()


def test_nothing_is_planned_after_it(loaded: Project) -> None:
    assert loaded.plan() == set()


def test_one_more_variant_plans_that_variant_alone(project: Project) -> None:
    project.configure(traffic={**TRAFFIC, "variants": [OPENVINO, ONNXRUNTIME]})
    assert project.plan() == measured(ONNXRUNTIME)


def test_other_settings_plan_the_traffic_alone(project: Project) -> None:
    project.configure(traffic={**TRAFFIC, "batch": 2})
    assert project.plan() == measured(OPENVINO)


def test_a_changed_module_of_the_traffic_plans_the_traffic_alone(project: Project) -> None:
    project.edit("scripts/tightrope/measure/traffic/rate_search.py", "RUNS = 9", "RUNS = 8")
    assert project.plan() == measured(OPENVINO)


def test_without_traffic_the_report_alone_is_planned(project: Project) -> None:
    project.configure()
    assert project.plan() == REPORT


def test_an_engine_that_answers_nonsense_is_a_failed_record_in_the_report(
    project: Project,
) -> None:
    path = "scripts/tightrope/engines/openvino.py"
    text = (project / path).read_text()
    # good for its first call, so that only traffic finds it out
    (project / path).write_text(
        text
        + """

def unspoilt(*arguments, honest=load, **options):
    run = honest(*arguments, **options)
    calls = iter(range(10**9))
    return lambda inputs: run(inputs) * (float("nan") if next(calls) > 20 else 1.0)


load = unspoilt
"""
    )
    target = f"reports/{MODEL}/{OPENVINO}.traffic.json"
    project.run("--", target)
    found = record(project)
    assert (found["status"], found["reason"]) == ("failed", "gives logits that are not numbers")
    assert found["tests"] == []
    # whole: the summary refuses records of the engine that there was before
    project.run()
    assert "gives logits that are not numbers" in (project / "reports/summary.html").read_text()
