from typing import Any

import numpy as np
import pytest
from tightrope.errors import WorkFailed
from tightrope.measure.accuracy import answers, check_logits

INPUTS = {"input_ids": np.zeros((2, 8), np.int64), "attention_mask": np.ones((2, 8), np.int64)}
GOOD = np.array([[0.5, -1.0, 2.0], [3.0, 1.0, 0.0]], np.float32)


def with_value(value: float) -> Any:
    logits = GOOD.copy()
    logits[1, 2] = value
    return logits


def test_logits_that_are_no_answers_fail_others_are_class_and_margin() -> None:
    for logits, reason in (
        (with_value(np.nan), "gives logits that are not numbers"),
        (with_value(np.inf), "gives logits that are not numbers"),
        (GOOD[:1], "gives outputs of shape [1, 3] in the place of [2, 3]"),
        (GOOD[:, :2], "gives outputs of shape [2, 2] in the place of [2, 3]"),
        (GOOD.ravel(), "gives outputs of shape [6] in the place of [2, 3]"),
        (None, "gives outputs of shape [] in the place of [2, 3]"),
    ):
        for check in (check_logits, answers):
            with pytest.raises(WorkFailed) as caught:
                check(logits, INPUTS, classes=3)
            assert (caught.value.reason, caught.value.transient) == (reason, False)
    check_logits(GOOD.tolist(), INPUTS, classes=3)
    before = GOOD.copy()
    found = answers(GOOD, INPUTS, classes=3)
    assert found == [(2, 1.5), (0, 2.0)]
    assert (before == GOOD).all()
    # plain numbers that a record can hold
    assert {(type(name), type(margin)) for name, margin in found} == {(int, float)}
    # a tie has no margin and goes to the first class
    ties = np.array([[1.0, 2.0, 2.0], [0.0, 0.0, 0.0]])
    assert answers(ties, INPUTS, classes=3) == [(1, 0.0), (0, 0.0)]
