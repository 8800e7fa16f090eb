"""A killed training goes on; a measured one is in the report and changes no weights."""

import json
import os
import signal
import time
from collections.abc import Callable
from copy import deepcopy
from typing import Any

import pytest
from artifact_files import without_digests
from tightrope.summary.document import read_summary
from tiny_project import CONFIG, MODEL, Project

REPORT = {"summarize/summarize", "render_report/render_report"}
MEASURED = {f"measure_training/{MODEL}"}
CHECKPOINT = f"artifacts/{MODEL}/checkpoint/checkpoint.json"
RECORD = f"reports/{MODEL}/training.json"
TRAINING = {"epochs": 2, "seeds": [0, 1]}


def models(**recipe: Any) -> dict[str, Any]:
    found = deepcopy(CONFIG["models"])
    found[MODEL]["train"] |= recipe
    return found


def test_a_killed_training_goes_on_to_the_same_bytes(unrun: Project) -> None:
    unrun.configure(models=models(epochs=12), threads=1)
    state = unrun / f"artifacts/{MODEL}/work/training/state.json"
    running = unrun.start("--", CHECKPOINT)
    while not state.is_file():
        assert running.poll() is None, running.stdout and running.stdout.read()
        time.sleep(0.01)
    os.killpg(running.pid, signal.SIGKILL)
    running.communicate(timeout=30)
    assert not (unrun / CHECKPOINT).exists()
    done = unrun.snakemake("--", CHECKPOINT)
    assert unrun.jobs(done) == {f"train_model/{MODEL}"}
    assert "fine-tuning: goes on after step" in done.stdout
    assert not state.parent.exists()
    weights = unrun / f"artifacts/{MODEL}/checkpoint/model.safetensors"
    resumed = (unrun / CHECKPOINT).read_bytes(), weights.read_bytes()
    (unrun / CHECKPOINT).unlink()
    unrun.run("--", CHECKPOINT)
    assert ((unrun / CHECKPOINT).read_bytes(), weights.read_bytes()) == resumed


@pytest.fixture(scope="module")
def timed(finished: Project, tmp_path_factory: pytest.TempPathFactory) -> Project:
    """A project after a run that measured its training."""
    project = finished.copy(tmp_path_factory.mktemp("training") / "project")
    project.configure(training=TRAINING)
    assert project.run() == MEASURED | REPORT
    return project


@pytest.fixture
def project(timed: Project, copied: Callable[[Project], Project]) -> Project:
    return copied(timed)


def test_every_epoch_of_every_seed_is_recorded(timed: Project) -> None:
    found = json.loads((timed / RECORD).read_text())
    assert (found["status"], found["reason"]) == ("ok", None)
    assert [run["seed"] for run in found["runs"]] == [0, 1]
    for run in found["runs"]:
        assert (run["samples"], run["held_out_samples"], run["micro_batches"]) == (108, 12, 1)
        assert run["peak_rss_bytes"] > 1e8
        assert len(run["epochs"]) == 2
        for epoch in run["epochs"]:
            assert epoch["samples_per_s"] == pytest.approx(108 / epoch["seconds"])
            assert 0 <= epoch["accuracy"] <= 1
    losses = [[epoch["loss"] for epoch in run["epochs"]] for run in found["runs"]]
    assert losses[0] != losses[1]


def test_summary_and_report_show_it(timed: Project) -> None:
    summary = json.loads((timed / "reports/summary.json").read_text())
    assert read_summary(timed / "reports/summary.json") == without_digests(summary)
    (entry,) = summary["training"]
    assert (entry["model"], entry["status"], entry["unit"]) == (MODEL, "ok", "texts")
    assert entry["epoch_s"]["mean"] > 0
    assert "<h2>Training</h2>" in (timed / "reports/summary.html").read_text()


def test_nothing_is_planned_after_it(timed: Project) -> None:
    assert timed.plan() == set()


def test_other_epochs_or_seeds_plan_the_measurement_alone(project: Project) -> None:
    project.configure(training={**TRAINING, "seeds": [0, 1, 2]})
    assert project.plan() == MEASURED | REPORT


def test_another_host_measures_again_and_does_not_retrain(project: Project) -> None:
    planned = project.plan("--config", "host=other")
    assert planned > MEASURED
    assert f"train_model/{MODEL}" not in planned


def test_the_module_of_the_measurement_plans_it_alone(project: Project) -> None:
    path = project / "scripts/tightrope/training/measure.py"
    path.write_text(path.read_text() + "\nCHANGED = True\n")
    assert project.plan() == MEASURED | REPORT


def test_a_missing_record_is_measured_again(project: Project) -> None:
    (project / RECORD).unlink()
    assert project.run() == MEASURED | REPORT


def test_a_training_that_fails_is_a_record_in_the_report_and_counts_for_strict(
    project: Project,
) -> None:
    # none in bf16, which fails where this CPU has none
    engines = {"onnxruntime": ["int8"], "openvino": ["fp32", "int8"]}
    settings = {"training": TRAINING, "engines": engines, "models": models(learning_rate=1e13)}
    project.configure(**settings)
    done = project.snakemake("--", RECORD)
    assert done.returncode == 0, done.stdout
    found = json.loads((project / RECORD).read_text())
    assert found["status"] == "failed"
    assert found["reason"].startswith(
        "train: training diverged (loss is NaN or infinite); lower train."
    )
    project.configure(**settings, strict=True)
    # with the race, whose finalists may have been of bf16
    rules = ("race_finalists", "summarize", "render_report")
    done = project.snakemake("--allowed-rules", *rules)
    assert f"strict: 1 failed: {MODEL}/training: train: training diverged" in done.stdout
    assert done.returncode == 1
    assert f"1 failed, the report says why: {MODEL}/training" in done.stdout
    assert (
        "training diverged (loss is NaN or infinite)"
        in (project / "reports/summary.html").read_text()
    )
