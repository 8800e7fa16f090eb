"""A baseline that is no better than chance is remarked."""

import json
from pathlib import Path
from typing import Any

import pytest
from accuracy_records import accuracy_record
from tightrope.records.accuracy import AccuracyRecord
from tightrope.summary.accuracy import chance_of, poor_baseline
from tightrope.terminal.decision import closing_words

BASELINE = "cpu-pytorch-fp32"
MODEL = {"baselines": {"cpu": BASELINE}, "chance": 0.6}


def record(labels: list[int] | None, model: str = "m") -> AccuracyRecord:
    return accuracy_record(model=model, labels=labels)


def result(low: float, top1: float = 0.62, variant: str = BASELINE) -> dict[str, Any]:
    accuracy = {"top1": top1, "low": low, "high": 0.7, "samples": 500}
    return {"model": "m", "variant": variant, "accuracy": accuracy}


def test_chance_is_the_share_of_the_most_frequent_label_of_the_longest_record() -> None:
    judged = {
        ("m", "a"): record([0, 0]),
        ("m", "b"): record([0, 1, 1, 2, 1]),
        ("n", "a"): record([2] * 9, "n"),
        ("o", "a"): record(None, "o"),
    }
    assert [chance_of(name, judged) for name in "mno"] == [0.6, 1.0, None]
    assert chance_of("none", judged) is None


def test_a_baseline_whose_interval_includes_chance_is_poor() -> None:
    assert poor_baseline(MODEL, [result(low=0.58)]) == (
        "the baseline itself is poor: its accuracy is 62.0 % (58.0 to 70.0), and always giving "
        "the most frequent label has 60.0 %; check the labels and their order, or train the model "
        "longer"
    )
    assert poor_baseline(MODEL, [result(low=0.2, top1=0.3)]) is not None


@pytest.mark.parametrize(
    ("model", "results"),
    [
        (MODEL, [result(low=0.601)]),
        (MODEL, [result(low=0.1, variant="cpu-openvino-int8-nncf-512")]),
        ({**MODEL, "chance": None}, [result(low=0.1)]),
        (MODEL, [{"model": "m", "variant": BASELINE, "accuracy": None}]),
        ({}, [result(low=0.1)]),
    ],
)
def test_a_baseline_above_chance_or_without_accuracy_is_not_remarked(model, results):
    assert poor_baseline(model, results) is None


def test_the_terminal_ends_with_the_remark(tmp_path: Path, repository: Path) -> None:
    document = json.loads((repository / "tests/data/summary.json").read_text())
    summary, report = tmp_path / "summary.json", tmp_path / "summary.html"
    words = []
    for chance in (0.3, 0.79):
        document["models"]["minilm-docstrings"]["chance"] = chance
        summary.write_text(json.dumps(document))
        report.touch()
        words.append(closing_words(report, summary, before=None))
    assert "the baseline itself is poor" not in words[0]
    line = "minilm-docstrings: the baseline itself is poor: its accuracy is 78.3 % ("
    assert line in words[1]
