"""Remarks on a model: a baseline no better than chance, and texts that were cut."""

from typing import Any

import pytest
from accuracy_records import accuracy_record
from artifact_files import written
from tightrope.summary.accuracy import chance_of, poor_baseline, truncation_words
from tightrope.summary.failures import TRAINING, exit_with_failures, failures

BASELINE = "cpu-pytorch-fp32"
MODEL = {"baselines": {"cpu": BASELINE}, "chance": 0.6}


def result(low: float, top1: float = 0.62, variant: str = BASELINE) -> dict[str, Any]:
    accuracy = {"top1": top1, "low": low, "high": 0.7, "samples": 500}
    return {"model": "m", "variant": variant, "accuracy": accuracy}


def test_chance_is_the_share_of_the_most_frequent_label_of_the_longest_record() -> None:
    labels = {"ma": [0, 0], "mb": [0, 1, 1, 2, 1], "na": [2] * 9, "oa": None}
    judged = {tuple(key): accuracy_record(model=key[0], labels=one) for key, one in labels.items()}
    assert [chance_of(name, judged) for name in "mno"] == [0.6, 1.0, None]
    assert chance_of("none", judged) is None


POOR = (
    "the baseline itself is poor: its accuracy is 62.0 % (58.0 to 70.0), and always giving the "
    "most frequent label has 60.0 %; check the labels and their order, or train the model longer"
)


@pytest.mark.parametrize(
    ("model", "one", "told"),
    [
        (MODEL, result(low=0.58), POOR),
        (MODEL, result(low=0.2, top1=0.3), "the baseline itself is poor: its accuracy is 30.0 %"),
        (MODEL, result(low=0.601), None),
        (MODEL, result(low=0.1, variant="cpu-openvino-int8-nncf-512"), None),
        ({**MODEL, "chance": None}, result(low=0.1), None),
        (MODEL, {"model": "m", "variant": BASELINE, "accuracy": None}, None),
        ({}, result(low=0.1), None),
    ],
)
def test_a_baseline_whose_interval_includes_chance_is_poor(model, one, told):
    found = poor_baseline(model, [one])
    assert found is None if told is None else found.startswith(told)


CUT = {"texts": 1500, "truncated": 37, "max_sequence": 128}
LONGER = {"texts": 5500, "truncated": 1200, "max_sequence": 64}


@pytest.mark.parametrize(
    ("splits", "expected"),
    [
        ({}, None),
        ({"evaluation": {**CUT, "truncated": 0}}, None),
        (
            {"evaluation": {"texts": 1, "truncated": 1, "max_sequence": 8}},
            "1 of 1 evaluation text was cut at max_sequence = 8 tokens",
        ),
        (
            {"evaluation": CUT, "calibration": {**CUT, "truncated": 0}, "train": LONGER},
            "37 of 1,500 evaluation texts were cut at max_sequence = 128 tokens; "
            "1,200 of 5,500 train texts were cut at train.sequence = 64 tokens",
        ),
    ],
)
def test_the_texts_that_were_cut_are_told_per_split(splits, expected):
    assert truncation_words(splits) == expected


def test_only_failed_results_and_trainings_are_failures(tmp_path):
    """That a strict run ends with an error and their reasons, the tests of whole runs show."""
    statuses = {"a": "ok", "b": "failed", "c": "unavailable"}
    results = [{"model": "m", "variant": name, "status": one} for name, one in statuses.items()]
    trained = [{"model": "m", "status": one} for one in ("failed", "ok")]
    written(tmp_path / "summary.json", {"results": results, "training": trained})
    assert [one["variant"] for one in failures(tmp_path / "summary.json")] == ["b", TRAINING]
    exit_with_failures(tmp_path / "none.json")  # which ends no process
