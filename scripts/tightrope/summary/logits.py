"""Distance of the logits of a variant from its baseline's, of which all variants share a part.

The numbers are those of `statistics.relative_error` and `statistics.mean_divergence` but for their
own rounding errors: NumPy computes exponentials, logarithms and sums of whole arrays, and its last
bits may differ from one kind of processor to another.
"""

from itertools import chain
from struct import pack
from typing import Any, NamedTuple

import numpy as np

from tightrope.statistics import Rows, mean_divergence, relative_error

Array = np.ndarray[Any, np.dtype[np.float64]]


class LogitDistance(NamedTuple):
    """`error` as of `relative_error`, `divergence` as of `mean_divergence`, in nats."""

    error: float | None
    divergence: float


class ReferenceLogits:
    """The logits of a baseline, [examples, classes], with what each comparison needs of them.

    Arrays are [classes, examples]: classes are few, and NumPy is fast along long axes.
    """

    def __init__(self, rows: Rows) -> None:
        self.rows = rows
        self.scales: dict[int, float | None] = {}
        self.array = rectangular(rows)
        if self.array is not None:
            below = self.array - self.array.max(axis=0)
            self.centred = below - below.mean(axis=0)  # exactly 0 where all are equal
            self.logarithms = log_softmax(self.array)
            self.shares = np.exp(self.logarithms)

    def distance(self, rows: Rows, count: int) -> LogitDistance:
        """Return the distance of the first `count` of these logits of a variant."""
        own = rectangular(rows[:count])
        theirs = None if self.array is None else self.array[:, :count]
        if own is None or theirs is None or own.shape != theirs.shape:
            ours, reference = rows[:count], self.rows[:count]
            return LogitDistance(relative_error(ours, reference), mean_divergence(reference, ours))
        scale = self.scale(count)
        terms = self.shares[:, :count] * (self.logarithms[:, :count] - log_softmax(own))
        relative = None if scale is None else root_mean_square(own - theirs) / scale
        return LogitDistance(relative, max(0.0, float(terms.sum(axis=0).mean())))

    def scale(self, count: int) -> float | None:
        """Return the root mean square of the first `count` rows about their means, None for 0."""
        if count not in self.scales:
            self.scales[count] = root_mean_square(self.centred[:, :count]) or None
        return self.scales[count]


def rectangular(rows: Rows) -> Array | None:
    """Return rows of the same length as an array [length, rows], None for others and for none."""
    lengths = set(map(len, rows))
    if len(lengths) != 1 or 0 in lengths:
        return None
    # three times as fast as an array of the rows
    packed = pack(f"{len(rows) * max(lengths)}d", *chain.from_iterable(rows))
    return np.frombuffer(packed).reshape(len(rows), -1).T.copy()


def log_softmax(logits: Array) -> Array:
    """Return `statistics.log_softmax` of each column."""
    highest = logits.max(axis=0)
    below = logits - highest
    found: Array = below - np.log(np.exp(below).sum(axis=0))
    return found


def root_mean_square(values: Array) -> float:
    """Return the root mean square of all values."""
    return float(np.sqrt(np.square(values).mean()))
