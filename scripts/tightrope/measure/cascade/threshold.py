"""Choose the confidence from which on the small model of a cascade answers."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from tightrope.measure.cascade.paired_test import binomial_p_value, paired_p_value
from tightrope.records.cascade import ThresholdTest
from tightrope.statistics import LEVEL

# the grid is chosen without looking at the answers, which the tests rest on
STEPS_PER_DECADE, DECADES = 20, 8
THRESHOLDS = (
    *(1 - 10 ** (step / STEPS_PER_DECADE - DECADES) for step in range(STEPS_PER_DECADE * DECADES)),
    0.0,
)


class Pool(NamedTuple):
    """Predictions of both models on the same examples, and how sure the small one is of its own.

    Each is [examples]; without labels in the data `labels` is None.
    """

    labels: Sequence[int] | None
    small: Sequence[int]
    large: Sequence[int]
    confidences: Sequence[float]


def confidences(logits: np.ndarray) -> np.ndarray:
    """Return the highest softmax probability of each row, float64 [batch].

    `logits` are [batch, classes] (Hendrycks and Gimpel 2017, "A Baseline for Detecting
    Misclassified and Out-of-Distribution Examples in Neural Networks").
    """
    wide = np.asarray(logits, dtype=np.float64)
    return 1 / np.exp(wide - wide.max(axis=1, keepdims=True)).sum(axis=1)


def ordered_tests(
    pool: Pool, *, budget: float, agreement: float | None = None
) -> list[ThresholdTest]:
    """Return the tests of thresholds, from the highest down to the first that fails.

    A test shows that with its threshold the cascade loses at most `budget` (a fraction) of
    accuracy against the large model alone; with `agreement`, that at least this share of its
    answers are those of the large model. Each test has level 0.05, and so have all together: their
    order is fixed, and the first failure ends them (fixed-sequence testing; Angelopoulos et al.
    2021, "Learn then Test: Calibrating Predictive Algorithms to Achieve Risk Control"). For the
    tests see `paired_test`.
    """
    small, large, sure = map(np.asarray, (pool.small, pool.large, pool.confidences))
    if agreement is not None:
        worse, better = small != large, np.zeros(len(small), dtype=bool)
    else:
        right, large_right = small == pool.labels, large == pool.labels
        worse, better = large_right & ~right, right & ~large_right
    tests: list[ThresholdTest] = []
    for threshold in THRESHOLDS:
        answered = sure >= threshold
        lost, gained = int(worse[answered].sum()), int(better[answered].sum())
        p_value = (
            paired_p_value(lost, gained, len(small), budget)
            if agreement is None
            else binomial_p_value(lost, len(small), 1 - agreement)
        )
        tests.append(
            {
                "threshold": threshold,
                "answered": int(answered.sum()),
                "lost": lost,
                "gained": gained,
                "p_value": p_value,
            }
        )
        if p_value > LEVEL:
            break
    return tests


def chosen(tests: Sequence[ThresholdTest]) -> float | None:
    """Return the lowest threshold whose test passed, None where none did."""
    return min((one["threshold"] for one in tests if one["p_value"] <= LEVEL), default=None)
