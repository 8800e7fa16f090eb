"""Summaries of many variants: read in less time and memory, with the same numbers and bytes."""

from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from accuracy_records import accuracy_record
from raced import HOST
from report_pages import summary_of
from tightrope.artifacts.content import write_artifact
from tightrope.logit_distance import mean_divergence, relative_error
from tightrope.records.accuracy import AccuracyRecord, Logits
from tightrope.summary.accuracy import ReferenceLogits
from tightrope.summary.document import read_summary, write_summary
from tightrope.summary.results import not_planned_entry
from tightrope.summary.runs import kept

IDENTITY: dict[str, Any] = {"model": "m", "variant": "cpu-pytorch-fp32", "libraries": {"a": None}}


def rows(seed: int, count: int, classes: int, scale: float = 3.0) -> Logits:
    """Logits as records keep them."""
    return np.random.default_rng(seed).normal(0, scale, (count, classes)).astype(np.float32)


def accuracy(**fields: Any) -> AccuracyRecord:
    known = {"labels": [0, 1], "predictions": [0, 1], "margins": [0.5, 1], "logits": rows(0, 2, 2)}
    return accuracy_record(**{**IDENTITY, "host": HOST, **known, **fields})


SIZES = [(300, 5, 3.0), (40, 2, 400.0), (1, 3, 0.1)]


@pytest.mark.parametrize(("count", "classes", "scale"), SIZES)
def test_distances_of_logits_are_those_of_the_plain_formulas_but_for_rounding(
    count, classes, scale
):
    theirs, ours = rows(1, count, classes, scale), rows(2, count, classes, scale)
    reference = ReferenceLogits(theirs)
    for first in {count, max(1, count // 2)}:  # of a slow engine the first examples alone
        error, distance = reference.distance(ours, first)
        both = ours[:first].tolist(), theirs[:first].tolist()
        expected, divergence = relative_error(*both), mean_divergence(*both[::-1])
        assert error == pytest.approx(expected, rel=1e-13)
        assert distance == pytest.approx(divergence, rel=1e-12, abs=1e-15)
    assert reference.distance(theirs, count) == (0.0, 0.0)


@pytest.mark.parametrize("logit", [1.0, 0.1])  # the mean of three times 0.1 is not 0.1
def test_a_baseline_with_equal_logits_has_no_scale_for_an_error(logit: float) -> None:
    baseline, ours = np.float32([[logit] * 3]), np.float32([[logit, logit, 2.0]])
    assert ReferenceLogits(baseline).distance(ours, 1)[0] is None
    assert ReferenceLogits(np.zeros((0, 0), np.float32)).array.size == 0
    with pytest.raises(ValueError, match=r"shape \(1, 2\), not \(1, 3\)"):
        ReferenceLogits(baseline).distance(ours[:, :2], 1)


def test_a_summary_has_the_bytes_that_it_had_when_it_was_written_at_once(tmp_path: Path) -> None:
    words = ["ä \n line.yaml", '"{}, [\\']
    reasons = ["no NVIDIA GPU", '{"a": [],\n "b": 1e-07}']
    name = "cuda-pytorch-fp32"
    results = [not_planned_entry("m", name, reason, "unavailable") for reason in reasons]
    fields = {"accuracy_budget_points": 1e-07, "configuration": words, "results": results}
    document = summary_of(fields)
    write_summary(tmp_path / "parts.json", document)
    write_artifact(tmp_path / "whole.json", msgspec.to_builtins(document))
    assert (tmp_path / "parts.json").read_bytes() == (tmp_path / "whole.json").read_bytes()
    assert read_summary(tmp_path / "parts.json") == document
    document.results[1].model = None
    with pytest.raises(msgspec.ValidationError, match=r"results: .*\.model"):
        write_summary(tmp_path / "refused.json", document)
    document.accuracy_budget_points = "1"
    with pytest.raises(msgspec.ValidationError, match="accuracy_budget_points: Expected"):
        write_summary(tmp_path / "refused.json", document)
    assert not [*tmp_path.glob("*refused*")]


def test_logits_are_kept_in_memory_only_of_engines_in_float_that_may_be_compared() -> None:
    in_int8 = accuracy(variant="cpu-onnxruntime-int8-minmax-8")
    assert (kept(accuracy(), False).logits.size, kept(accuracy(), False).predictions) == (0, [])
    assert kept(accuracy(), False).labels == [0, 1]
    assert (kept(accuracy(), True).logits == accuracy().logits).all()
    assert (kept(in_int8, True).logits.size, kept(in_int8, True).predictions) == (0, [0, 1])
