"""A training that fails is a line, or a record in the report."""

import re
from copy import deepcopy
from typing import Any

from tiny_project import CONFIG, MODEL

RECORD = f"reports/{MODEL}/training.json"
TRAINING = {"epochs": 2, "seeds": [0, 1]}


def models(**recipe: Any) -> dict[str, Any]:
    found = deepcopy(CONFIG["models"])
    found[MODEL]["train"] |= recipe
    return found


def test_a_training_that_fails_is_a_record_in_the_report_and_counts_for_strict(project) -> None:
    project.configure(training=TRAINING, models=models(learning_rate=1e13), strict=True)
    rules = ("measure_training", "summarize", "render_report")
    done = project.snakemake("--allowed-rules", *rules)
    found = project.read(RECORD)
    assert found["status"] == "failed"
    assert found["reason"].startswith(
        "train: training diverged (loss is NaN or infinite); lower train."
    )
    # where this CPU has no bf16 a variant of it has failed too
    assert re.search(rf"strict: .*{MODEL}/training: train: training diverged", done.stdout)
    assert done.returncode == 1
    assert re.search(rf"failed, the report says why: .*{MODEL}/training", done.stdout)
    assert (
        "training diverged (loss is NaN or infinite)"
        in (project / "reports/summary.html").read_text()
    )
