from typing import Any

import pytest
from tightrope.accuracy_results import accuracy_entry
from tightrope.records import AccuracyRecord
from tightrope.statistics import mcnemar_p_value, paired_difference, share

HOST = {"cpu": "a", "isa": [], "cores": 2, "gpu": None, "driver": None}
BASELINE = "cpu-pytorch-fp32"
CANDIDATE = "cpu-onnxruntime-fp32"
ACCURACY_FIELDS = {
    *("top1", "low", "high", "samples", "delta", "delta_low", "delta_high", "p_value", "flips"),
    "verdict",
}


def accuracy(predictions: list[int], variant: str = CANDIDATE, **changes: Any) -> AccuracyRecord:
    facts = {
        "labels": [0] * len(predictions),
        "predictions": predictions,
        "margins": [1.0] * len(predictions),
        "data_sha256": "d",
    }
    identity = {"model": "m", "variant": variant, "host": HOST, "libraries": {}}
    return AccuracyRecord(**{**identity, **facts, **changes})


def test_accuracy_is_compared_on_the_same_examples() -> None:
    labels = [0, 1, 2] * 100
    theirs = [0, 1, 0] * 100  # 200 right
    ours = theirs.copy()
    ours[2] = ours[5] = 2  # gained
    ours[0] = 1  # lost
    ours[8] = 1  # another wrong answer: a flip that changes no accuracy
    found = accuracy_entry(
        accuracy(ours, labels=labels), accuracy(theirs, BASELINE, labels=labels), 0.01
    )
    assert (found["top1"], found["low"], found["high"]) == share(201, 300)
    assert (found["delta"], found["delta_low"], found["delta_high"]) == paired_difference(2, 1, 300)
    assert found["delta"] == pytest.approx(1 / 300)
    assert found["p_value"] == mcnemar_p_value(2, 1)
    assert (found["samples"], found["flips"]) == (300, 4)
    assert found["agreement"] == pytest.approx(296 / 300)


@pytest.mark.parametrize(("ours", "theirs"), [(100, 300), (300, 100)])
def test_where_one_was_judged_on_the_first_examples_only_the_change_is_that_of_those(
    ours: int, theirs: int
) -> None:
    mine, rival = [0] * 90 + [1] * 210, [0] * 60 + [1] * 240
    found = accuracy_entry(accuracy(mine[:ours]), accuracy(rival[:theirs], BASELINE), 0.01)
    assert found["samples"] == ours
    assert found["top1"] == pytest.approx(90 / ours)
    assert found["delta"] == pytest.approx(30 / 100)
    assert (found["delta_low"], found["delta_high"]) == paired_difference(30, 0, 100)[1:]
    assert (found["flips"], found["agreement"]) == (30, pytest.approx(0.7))
    assert found["p_value"] == mcnemar_p_value(30, 0)


@pytest.mark.parametrize(
    ("wrong", "samples", "verdict"),
    [(0, 2000, "kept"), (200, 2000, "dropped"), (1, 60, "undecided")],
)
def test_the_verdict_is_that_of_the_whole_interval(wrong: int, samples: int, verdict: str) -> None:
    ours = [1] * wrong + [0] * (samples - wrong)
    found = accuracy_entry(accuracy(ours), accuracy([0] * samples, BASELINE), 0.01)
    assert found["verdict"] == verdict


def test_the_baseline_keeps_its_own_answers_whatever_the_sample_count() -> None:
    own = accuracy([0, 1, 0], BASELINE)
    found = accuracy_entry(own, own, 0.0)
    assert (found["delta"], found["delta_low"], found["delta_high"]) == (0, 0, 0)
    assert (found["flips"], found["verdict"]) == (0, "kept")


def test_without_labels_there_is_no_accuracy() -> None:
    assert accuracy_entry(accuracy([], labels=None), None, 0.01) is None


@pytest.mark.parametrize(
    "baseline",
    [
        None,
        accuracy([], BASELINE, status="failed"),
        accuracy([0] * 100, BASELINE, data_sha256="another split"),
        accuracy([0] * 100, BASELINE, host={**HOST, "isa": ["amx"]}),
    ],
    ids=["none", "failed", "another-split", "another-host"],
)
def test_without_a_comparable_baseline_the_change_is_unknown(baseline: Any) -> None:
    found = accuracy_entry(accuracy([0] * 100), baseline, 0.01)
    assert set(found) >= ACCURACY_FIELDS
    assert (found["top1"], found["delta"], found["verdict"]) == (1.0, None, "undecided")
