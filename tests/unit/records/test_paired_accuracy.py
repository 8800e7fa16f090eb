from typing import Any

import numpy as np
import pytest
from accuracy_records import accuracy_record
from tightrope.records.accuracy import AccuracyRecord
from tightrope.records.paired_accuracy import ROUNDING, compared

SAMPLES = 60  # too few to show a drop of at most one point
LOGITS = np.random.default_rng(0).normal(size=(SAMPLES, 3))
HOST = {"cpu": "a", "isa": [], "cores": 2, "gpu": None, "driver": None}


def record(variant: str, error: float = 0.0, wrong: int = 0) -> AccuracyRecord:
    """Predictions of which the first are changed, and logits that differ by a relative error."""
    noise = np.random.default_rng(1).normal(size=LOGITS.shape)
    scale = np.linalg.norm(LOGITS - LOGITS.mean(1, keepdims=True)) / np.linalg.norm(noise)
    predictions = LOGITS.argmax(1)
    predictions[:wrong] = (predictions[:wrong] + 1) % 3
    identity: dict[str, Any] = {"model": "m", "variant": variant, "host": HOST, "libraries": {}}
    return accuracy_record(
        **identity,
        labels=LOGITS.argmax(1).tolist(),
        predictions=predictions.tolist(),
        logits=(LOGITS + error * scale * noise).tolist(),
    )


BASELINE = record("cpu-pytorch-fp32")


@pytest.mark.parametrize("precision", ROUNDING)
def test_a_float_engine_with_the_same_answers_is_kept_on_a_small_split(precision: str) -> None:
    variant = f"cuda-pytorch-{precision}"
    close = compared(record(variant, 0.9 * ROUNDING[precision]), BASELINE, 0.01)
    assert close["verdict"] == "kept"
    assert close["delta_low"] < -0.01, "the interval alone would leave it undecided"
    far = compared(record(variant, 1.1 * ROUNDING[precision]), BASELINE, 0.01)
    assert far["verdict"] == "undecided"


def test_a_changed_answer_leaves_a_float_engine_undecided() -> None:
    assert compared(record("cpu-openvino-fp32", wrong=1), BASELINE, 0.01)["verdict"] == "undecided"


def test_many_changed_answers_are_dropped_also_in_float() -> None:
    assert compared(record("cpu-openvino-fp32", wrong=30), BASELINE, 0.01)["verdict"] == "dropped"


def test_a_quantized_engine_is_kept_only_by_its_interval() -> None:
    int8 = record("cpu-onnxruntime-int8-minmax-64")
    assert compared(int8, BASELINE, 0.01)["verdict"] == "undecided"
    assert compared(int8, BASELINE, 0.2)["verdict"] == "kept"


def test_only_the_examples_of_both_are_compared() -> None:
    slow = record("cpu-openvino-fp32")
    slow.predictions, slow.logits = slow.predictions[:20], slow.logits[:20]
    slow.labels = slow.labels and slow.labels[:20]
    assert compared(slow, BASELINE, 0.01)["verdict"] == "kept"
