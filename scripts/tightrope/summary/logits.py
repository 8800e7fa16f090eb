"""Distance of the logits of a variant from its baseline's, of which all variants share a part.

The numbers are those of `statistics.relative_error` and `statistics.mean_divergence`, bit by bit:
NumPy adds, subtracts and multiplies, while exponentials, logarithms and sums are Python's.
"""

import math
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Any, NamedTuple

import numpy as np

from tightrope.statistics import Rows, mean_divergence, relative_error, root_mean_square

Array = np.ndarray[Any, np.dtype[np.float64]]


class LogitDistance(NamedTuple):
    """`error` as of `relative_error`, `divergence` as of `mean_divergence`, in nats."""

    error: float | None
    divergence: float


class ReferenceLogits:
    """The logits of a baseline, [examples, classes], with what each comparison needs of them."""

    def __init__(self, rows: Rows) -> None:
        self.rows = rows
        self.scales: dict[int, float | None] = {}
        self.array = rectangular(rows)
        if self.array is not None:
            count, classes = self.array.shape
            means = [math.fsum(row) / classes for row in rows]
            self.centred = self.array - np.reshape(means, (count, 1))
            self.logarithms = log_softmax(self.array)
            shares = map(math.exp, self.logarithms.ravel().tolist())
            self.shares = np.fromiter(shares, np.float64, count * classes).reshape(count, classes)

    def distance(self, rows: Rows, count: int) -> LogitDistance:
        """Return the distance of the first `count` of these logits of a variant."""
        own = rectangular(rows[:count])
        theirs = None if self.array is None else self.array[:count]
        if own is None or theirs is None or own.shape != theirs.shape:
            ours, reference = rows[:count], self.rows[:count]
            return LogitDistance(relative_error(ours, reference), mean_divergence(reference, ours))
        scale = self.scale(count)
        error = (own - theirs).ravel().tolist()
        terms = self.shares[:count] * (self.logarithms[:count] - log_softmax(own))
        mean = math.fsum(map(math.fsum, terms.tolist())) / len(own)
        relative = None if scale is None else root_mean_square(error) / scale
        return LogitDistance(relative, max(0.0, mean))

    def scale(self, count: int) -> float | None:
        """Return the root mean square of the first `count` rows about their means, None for 0."""
        if count not in self.scales:
            centred = self.centred[:count].ravel().tolist()
            self.scales[count] = root_mean_square(centred) if any(centred) else None
        return self.scales[count]


def rectangular(rows: Rows) -> Array | None:
    """Return rows of the same length as an array, None for others and for none."""
    lengths = set(map(len, rows))
    if len(lengths) != 1 or 0 in lengths:
        return None
    shape = (len(rows), *lengths)
    # twice as fast as an array of the rows
    return np.fromiter(chain.from_iterable(rows), np.float64, shape[0] * shape[1]).reshape(shape)


def log_softmax(logits: Array) -> Array:
    """Return `statistics.log_softmax` of each row."""
    count, classes = logits.shape
    highest = logits.max(axis=1)
    below = (logits - highest[:, None]).ravel().tolist()
    sums = map(math.fsum, in_rows(map(math.exp, below), classes))
    totals = highest + np.fromiter(map(math.log, sums), np.float64, count)
    found: Array = logits - totals[:, None]
    return found


def in_rows(values: Iterable[float], length: int) -> Iterator[tuple[float, ...]]:
    """Yield the values in rows of so many."""
    return zip(*[iter(values)] * length, strict=True)
