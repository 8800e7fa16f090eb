"""Distances between the logits of two engines on the same examples."""

import math
import statistics
from collections.abc import Sequence

Rows = Sequence[Sequence[float]]


def relative_error(logits: Rows, baseline: Rows) -> float | None:
    """Return the RMS of the difference over the RMS of the baseline, centered per row.

    Both are [examples, classes]. None where the baseline has equal logits for all classes.
    """
    both = zip(logits, baseline, strict=True)
    error = [ours - theirs for pair in both for ours, theirs in zip(*pair, strict=True)]
    # from the first, so that equal logits are exactly their mean
    rows = [[value - row[0] for value in row] for row in baseline]
    scale = [value - statistics.fmean(row) for row in rows for value in row]
    return root_mean_square(error) / root_mean_square(scale) if any(scale) else None


def root_mean_square(values: list[float]) -> float:
    """Return the root mean square."""
    return math.hypot(*values) / math.sqrt(len(values))


def mean_divergence(baseline: Rows, logits: Rows) -> float:
    """Return the mean over examples of KL(baseline || own) in nats (Kullback-Leibler divergence).

    Of the softmax of each row of the logits, [examples, classes] (Kullback and Leibler 1951, "On
    Information and Sufficiency"). 0 where they differ by the same number in all classes of a row.
    """
    rows = zip(map(log_softmax, baseline), map(log_softmax, logits), strict=True)
    found = [
        math.fsum(math.exp(theirs) * (theirs - ours) for theirs, ours in zip(*pair, strict=True))
        for pair in rows
    ]
    return max(0.0, statistics.fmean(found))  # floating-point error can make a zero negative


def log_softmax(row: Sequence[float]) -> list[float]:
    """Return the log-softmax of one row of logits, without overflow for large values."""
    highest = max(row)
    total = highest + math.log(math.fsum(math.exp(value - highest) for value in row))
    return [value - total for value in row]
