import numpy as np
import pytest
from accuracy_records import accuracy_record
from tightrope.records.accuracy import ROUNDING, AccuracyRecord, compared

SAMPLES = 60  # too few to show a drop of at most one point
LOGITS = np.random.default_rng(0).normal(size=(SAMPLES, 3))


def record(variant, error=0.0, wrong=0, samples=SAMPLES) -> AccuracyRecord:
    """Predictions of which the first are changed, and logits that differ by a relative error."""
    noise = np.random.default_rng(1).normal(size=LOGITS.shape)
    scale = np.linalg.norm(LOGITS - LOGITS.mean(1, keepdims=True)) / np.linalg.norm(noise)
    predictions = LOGITS.argmax(1)
    predictions[:wrong] = (predictions[:wrong] + 1) % 3
    answers = {"labels": LOGITS.argmax(1), "predictions": predictions}
    answers["logits"] = LOGITS + error * scale * noise
    first = {name: every[:samples].tolist() for name, every in answers.items()}
    return accuracy_record(variant=variant, data_sha256=None, **first)


BASELINE = record("cpu-pytorch-fp32")
FLOAT, INT8 = "cpu-openvino-fp32", "cpu-onnxruntime-int8-minmax-64"


@pytest.mark.parametrize("precision", ROUNDING)
def test_a_float_engine_with_the_same_answers_is_kept_on_a_small_split(precision: str) -> None:
    variant = f"cuda-pytorch-{precision}"
    close = compared(record(variant, 0.9 * ROUNDING[precision]), BASELINE, 0.01)
    assert (close["verdict"], close["samples_needed"]) == ("kept", None)
    assert close["delta_low"] < -0.01, "the interval alone would leave it undecided"
    far = compared(record(variant, 1.1 * ROUNDING[precision]), BASELINE, 0.01)
    assert far["verdict"] == "undecided"


def test_others_have_the_verdict_of_their_interval() -> None:
    for changed, budget, verdict in (
        (record(FLOAT, wrong=1), 0.01, "undecided"),
        (record(FLOAT, wrong=30), 0.01, "dropped"),
        # a quantized one is kept by its interval alone
        (record(INT8), 0.01, "undecided"),
        (record(INT8), 0.2, "kept"),
        # only the examples of both are compared
        (record(FLOAT, samples=20), 0.01, "kept"),
    ):
        assert compared(changed, BASELINE, budget)["verdict"] == verdict
