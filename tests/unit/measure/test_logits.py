from typing import Any

import numpy as np
import pytest
from tightrope.errors import WorkFailed
from tightrope.measure.logits import answers, check_logits

INPUTS = {"input_ids": np.zeros((2, 8), np.int64), "attention_mask": np.ones((2, 8), np.int64)}
ROWS = 2
GOOD = np.array([[0.5, -1.0, 2.0], [3.0, 1.0, 0.0]], np.float32)


def with_value(value: float) -> Any:
    logits = GOOD.copy()
    logits[1, 2] = value
    return logits


def test_finite_logits_of_the_right_shape_pass() -> None:
    check_logits(GOOD, INPUTS, classes=3)
    check_logits(np.zeros((2, 3)), INPUTS, classes=3)
    check_logits(GOOD.tolist(), INPUTS, classes=3)


@pytest.mark.parametrize(("check", "of"), [(check_logits, INPUTS), (answers, ROWS)])
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_one_logit_that_is_no_number_is_a_failure(check: Any, of: Any, value: float) -> None:
    with pytest.raises(WorkFailed, match="gives logits that are not numbers") as caught:
        check(with_value(value), of, classes=3)
    assert not caught.value.transient


@pytest.mark.parametrize(("check", "of"), [(check_logits, INPUTS), (answers, ROWS)])
@pytest.mark.parametrize(
    ("logits", "shape"),
    [
        (GOOD[:1], "[1, 3]"),
        (GOOD[:, :2], "[2, 2]"),
        (GOOD.T, "[3, 2]"),
        (GOOD[None], "[1, 2, 3]"),
        (GOOD.ravel(), "[6]"),
        (np.zeros((0, 3)), "[0, 3]"),
        (1.0, "[]"),
        (None, "[]"),
    ],
)
def test_outputs_of_another_shape_are_a_failure_that_names_both(
    check: Any, of: Any, logits: Any, shape: str
) -> None:
    with pytest.raises(WorkFailed) as caught:
        check(logits, of, classes=3)
    assert caught.value.reason == f"gives outputs of shape {shape} in the place of [2, 3]"
    assert not caught.value.transient


def test_the_batch_is_that_of_the_inputs() -> None:
    with pytest.raises(WorkFailed, match=r"in the place of \[5, 3\]"):
        check_logits(GOOD, {"input_ids": np.zeros((5, 8))}, classes=3)


def test_answers_are_the_class_of_each_row_and_its_margin() -> None:
    assert answers(GOOD, ROWS, classes=3) == [(2, 1.5), (0, 2.0)]


def test_answers_are_plain_numbers_that_a_record_can_hold() -> None:
    for name, margin in answers(GOOD, ROWS, classes=3):
        assert (type(name), type(margin)) == (int, float)


def test_a_tie_has_no_margin_and_goes_to_the_first_class() -> None:
    assert answers(np.array([[1.0, 2.0, 2.0], [0.0, 0.0, 0.0]]), ROWS, classes=3) == [
        (1, 0.0),
        (0, 0.0),
    ]


def test_the_margin_is_to_the_second_highest_and_never_negative() -> None:
    logits = np.random.default_rng(0).normal(size=(50, 5))
    found = answers(logits, 50, classes=5)
    for (name, margin), row in zip(found, logits, strict=True):
        others = np.delete(row, name)
        assert margin == pytest.approx(row[name] - others.max())
        assert margin >= 0


def test_answers_leave_the_logits_as_they_were() -> None:
    logits = GOOD.copy()
    answers(logits, ROWS, classes=3)
    assert (logits == GOOD).all()
