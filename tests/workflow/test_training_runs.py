"""A training that fails is a line, or a record in the report."""

import json
from copy import deepcopy
from typing import Any

from tiny_project import CONFIG, MODEL, Project

RECORD = f"reports/{MODEL}/training.json"
TRAINING = {"epochs": 2, "seeds": [0, 1]}


def models(**recipe: Any) -> dict[str, Any]:
    found = deepcopy(CONFIG["models"])
    found[MODEL]["train"] |= recipe
    return found


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


def test_layers_that_are_not_there_end_the_training_with_a_line(project: Project) -> None:
    child = {"from": MODEL, "prune": {"layers": 3}, "train": CONFIG["models"][MODEL]["train"]}
    project.configure(models={**CONFIG["models"], "small": child})
    done = project.snakemake("artifacts/small/checkpoint/checkpoint.json")
    assert done.returncode != 0
    assert "prune.layers = 3: BertForSequenceClassification has layers 0 to 1" in done.stdout
