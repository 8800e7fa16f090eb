import math
from typing import Any

import numpy as np
import pytest
from accuracy_records import accuracy_record
from msgspec.structs import astuple
from raced import HOST
from tightrope.decide.result import Accuracy
from tightrope.records.accuracy import ROUNDING, AccuracyRecord
from tightrope.statistics import detectable_drop, paired_difference, share
from tightrope.summary.accuracy import Split, accuracy_between, accuracy_entry, flipped
from tightrope.summary.runs import kept

# softmax: (1/2, 1/4, 1/4), and so on
LOGITS = [[math.log(2), 0.0, 0.0], [0.0, math.log(2), 0.0], [0.0, 0.0, math.log(2)]]
BASELINE = "cpu-pytorch-fp32"
CANDIDATE = "cpu-onnxruntime-fp32"
SPLIT = Split("d", [f"text {index}" for index in range(2000)], ["bad", "good", "mixed"])


def accuracy(predictions: list[int], variant: str = CANDIDATE, **changes: Any) -> AccuracyRecord:
    logits = [LOGITS[prediction] for prediction in predictions]
    answers = {"variant": variant, "predictions": predictions, "logits": logits}
    return accuracy_record(**{**answers, **changes})


def test_accuracy_is_compared_on_the_same_examples() -> None:
    labels = [0, 1, 2] * 100
    theirs = [0, 1, 0] * 100  # 200 right
    ours = theirs.copy()
    ours[2] = ours[5] = 2  # gained
    ours[0:30:3] = [1] * 10  # lost
    ours[8] = 1  # another wrong answer: a flip that changes no accuracy
    own, baseline = accuracy(ours, labels=labels), accuracy(theirs, BASELINE, labels=labels)
    found = accuracy_entry(own, baseline, 0.01, SPLIT)
    assert (found.top1, found.low, found.high) == share(192, 300)
    ends = paired_difference(2, 10, 300)
    assert (found.delta, found.delta_low, found.delta_high) == ends
    assert found.delta == pytest.approx(-8 / 300)
    assert (found.gained, found.lost, found.samples, found.flips) == (2, 10, 300, 13)
    # 2 gained and 10 lost of 12: the test of McNemar sees no other flip
    assert found.p_value == pytest.approx(2 * (1 + 12 + 66) / 2**12)
    assert found.detectable == detectable_drop(12, 300) > 0.01
    assert found.large_enough is False
    assert found.agreement == pytest.approx(287 / 300)


@pytest.mark.parametrize(("ours", "theirs"), [(100, 300), (300, 100)])
def test_where_one_was_judged_on_the_first_examples_only_the_change_is_that_of_those(ours, theirs):
    mine, rival = [0] * 90 + [1] * 210, [0] * 60 + [1] * 240
    found = accuracy_entry(accuracy(mine[:ours]), accuracy(rival[:theirs], BASELINE), 0.01, SPLIT)
    assert found.samples == ours
    assert found.top1 == pytest.approx(90 / ours)
    assert found.delta == pytest.approx(30 / 100)
    assert (found.delta_low, found.delta_high) == paired_difference(30, 0, 100)[1:]
    assert (found.flips, found.agreement) == (30, pytest.approx(0.7))


def test_the_baseline_keeps_its_own_answers_whatever_the_sample_count() -> None:
    own = accuracy([0, 1, 0], BASELINE)
    found = accuracy_entry(own, own, 0.0, SPLIT)
    assert (found.delta, found.delta_low, found.delta_high) == (0, 0, 0)
    assert (found.flips, found.gained, found.lost, found.verdict) == (0, 0, 0, "kept")
    assert (found.p_value, found.agreement, found.flipped) == (1, 1, [])
    assert (found.logit_error, found.kl, found.detectable) == (0, 0, 0)
    assert found.large_enough is True


def test_logits_are_compared_with_the_baselines_whatever_the_labels_say() -> None:
    # the second of two differs: (1/4, 1/2, 1/4) of the baseline is (1/2, 1/4, 1/4)
    found = accuracy_entry(accuracy([0, 0]), accuracy([0, 1], BASELINE), 0.01, SPLIT)
    assert found.kl == pytest.approx((0.25 * math.log(0.5) + 0.5 * math.log(2)) / 2)
    # each row lies about its mean with the squares 4, 1, 1 ninths of ln(2)**2; the errors
    # are two of six, each ln 2
    assert found.logit_error == pytest.approx(math.sqrt((2 / 6) / (6 / 9 / 3)))
    # and on the examples that both judged
    for ours, theirs in ((2, 3), (3, 2)):
        mine, rival = accuracy([0, 0, 1][:ours]), accuracy([0, 0, 2][:theirs], BASELINE)
        found = accuracy_entry(mine, rival, 0.01, SPLIT)
        assert (found.logit_error, found.kl, found.flipped) == (0, 0, [])
    found = accuracy_entry(accuracy([0, 2, 0]), accuracy([0, 0, 1], BASELINE), 0.01, SPLIT)
    assert [one.index for one in found.flipped] == [1, 2]
    assert accuracy_entry(accuracy([], labels=None), None, 0.01, SPLIT) is None


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
    found = accuracy_entry(accuracy([0] * 100), baseline, 0.01, SPLIT)
    assert found == Accuracy(*share(100, 100), 100, verdict="undecided")
    assert (found.delta, found.change) == (None, None)


NAMES = ["bad", "good", "mixed"]
LABELS = [0, 1, 2, 1]
TEXTS = ["fine", "not bad", "so so", "well"]


def answered(predictions: list[int], margins: list[float], labels: list[int]) -> AccuracyRecord:
    return accuracy_record(predictions=predictions, margins=margins, labels=labels)


OURS = answered([0, 2, 1, 0], [4.0, 0.5, 0.25, 1.5], LABELS)
THEIRS = answered([0, 1, 2, 2], [3.0, 0.125, 2.5, 0.125], LABELS)


def test_the_one_of_which_the_baseline_was_surest_comes_first_and_the_first_of_equals() -> None:
    found = flipped(OURS, THEIRS, Split("d", TEXTS, NAMES))
    assert [astuple(one) for one in found] == [
        (2, "so so", "mixed", "mixed", "good", 2.5, 0.25),
        (1, "not bad", "good", "good", "mixed", 0.125, 0.5),
        (3, "well", "good", "mixed", "bad", 0.125, 1.5),
    ]
    assert (found[0].baseline, found[0].prediction, found[0].margin) == ("mixed", "good", 0.25)
    # texts of another split than the one judged are not told
    found = flipped(OURS, THEIRS, Split("another", ["other text"], NAMES))
    assert [(one.index, one.text) for one in found] == [(2, None), (1, None), (3, None)]
    # a class without a name is told by its number
    for names, told in ((None, [2, 1]), (NAMES[:2], [2, "good"])):
        first = flipped(OURS, THEIRS, Split("d", TEXTS, names))[0]
        assert [first.baseline, first.prediction] == told


def test_the_two_hundred_worst_are_listed() -> None:
    labels, margins = [0] * 500, [float(index) for index in range(500)]
    ours, theirs = answered([1] * 500, margins, labels), answered([0] * 500, margins, labels)
    found = flipped(ours, theirs, Split("d", ["text"] * 500, NAMES))
    assert [one.index for one in found] == list(range(499, 299, -1))


def test_a_text_is_cut_at_three_hundred_characters() -> None:
    texts = ["x" * 300, "x" * 301, "x" * 295 + " " * 10 + "x" * 400, None]
    ours, theirs = (answered([one] * 4, [1.0] * 4, [0] * 4) for one in (1, 0))
    found = flipped(ours, theirs, Split("d", texts, NAMES))
    cut = ["x" * count + "\N{HORIZONTAL ELLIPSIS}" for count in (299, 295)]
    assert [one.text for one in found] == [texts[0], *cut, None]


SAMPLES = 60  # too few to show a drop of at most one point
DRAWN = np.random.default_rng(0).normal(size=(SAMPLES, 3))


def few(variant, error=0.0, wrong=0, samples=SAMPLES) -> AccuracyRecord:
    """Predictions of which the first are changed, and logits that differ by a relative error."""
    noise = np.random.default_rng(1).normal(size=DRAWN.shape)
    scale = np.linalg.norm(DRAWN - DRAWN.mean(1, keepdims=True)) / np.linalg.norm(noise)
    predictions = DRAWN.argmax(1)
    predictions[:wrong] = (predictions[:wrong] + 1) % 3
    answers = {"labels": DRAWN.argmax(1), "predictions": predictions}
    answers["logits"] = DRAWN + error * scale * noise
    first = {name: every[:samples].tolist() for name, every in answers.items()}
    return accuracy_record(variant=variant, data_sha256=None, **first)


EAGER = few("cpu-pytorch-fp32")
FLOAT, INT8 = "cpu-openvino-fp32", "cpu-onnxruntime-int8-minmax-64"


@pytest.mark.parametrize("precision", ROUNDING)
def test_a_float_engine_with_the_same_answers_is_kept_on_a_small_split(precision: str) -> None:
    variant = f"cuda-pytorch-{precision}"
    close = accuracy_entry(few(variant, 0.9 * ROUNDING[precision]), EAGER, 0.01, SPLIT)
    assert (close.verdict, close.samples_needed) == ("kept", None)
    assert close.delta_low < -0.01, "the interval alone would leave it undecided"
    far = accuracy_entry(few(variant, 1.1 * ROUNDING[precision]), EAGER, 0.01, SPLIT)
    assert far.verdict == "undecided"


def test_others_have_the_verdict_of_their_interval() -> None:
    for changed, budget, verdict in (
        (few(FLOAT, wrong=1), 0.01, "undecided"),
        (few(FLOAT, wrong=30), 0.01, "dropped"),
        # a quantized one is kept by its interval alone
        (few(INT8), 0.01, "undecided"),
        (few(INT8), 0.2, "kept"),
        # only the examples of both are compared
        (few(FLOAT, samples=20), 0.01, "kept"),
    ):
        assert accuracy_entry(changed, EAGER, budget, SPLIT).verdict == verdict


def test_a_float_engine_is_compared_with_a_quantized_one_whose_logits_are_not_kept() -> None:
    own, quantized = (kept(few(name), True) for name in (FLOAT, INT8))
    found = accuracy_between(own, quantized, 0.01)
    assert (found.change.verdict, found.flips) == ("undecided", 0)
    assert accuracy_between(own, kept(EAGER, True), 0.01).change.verdict == "kept"
