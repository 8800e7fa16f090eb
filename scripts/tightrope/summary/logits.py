"""Distance of the logits of a variant from its baseline's, of which all variants share a part.

The numbers are those of `logit_distance.relative_error` and `mean_divergence` there but for their
own rounding errors: NumPy computes exponentials, logarithms and sums of whole arrays, and its last
bits may differ from one kind of processor to another.
"""

from typing import Any, NamedTuple

import numpy as np

from tightrope.records.accuracy import Logits

Array = np.ndarray[Any, np.dtype[np.float64]]


class LogitDistance(NamedTuple):
    """`error` as of `relative_error`, `divergence` as of `mean_divergence`, in nats."""

    error: float | None
    divergence: float


class ReferenceLogits:
    """The logits of a baseline, [examples, classes], with what each comparison needs of them.

    Arrays are float64 [classes, examples]: classes are few, and NumPy is fast along long axes.
    """

    def __init__(self, logits: Logits) -> None:
        self.scales: dict[int, float | None] = {}
        self.array = by_class(logits)
        below = self.array - self.array.max(axis=0, initial=-np.inf)
        # exactly 0 where all are equal; a baseline that has failed has no classes
        self.centred = below - below.sum(axis=0) / max(1, len(below))
        self.logarithms = log_softmax(self.array)
        self.shares = np.exp(self.logarithms)

    def distance(self, logits: Logits, count: int) -> LogitDistance:
        """Return the distance of the first `count` of these logits of a variant.

        Raises ValueError where they are of other classes than the baseline's.
        """
        own, theirs = by_class(logits[:count]), self.array[:, :count]
        if own.shape != theirs.shape:
            raise ValueError(f"logits of shape {own.shape[::-1]}, not {theirs.shape[::-1]}")
        scale = self.scale(count)
        terms = self.shares[:, :count] * (self.logarithms[:, :count] - log_softmax(own))
        relative = None if scale is None else root_mean_square(own - theirs) / scale
        return LogitDistance(relative, max(0.0, float(terms.sum(axis=0).mean())))

    def scale(self, count: int) -> float | None:
        """Return the root mean square of the first `count` rows about their means, None for 0."""
        if count not in self.scales:
            self.scales[count] = root_mean_square(self.centred[:, :count]) or None
        return self.scales[count]


def by_class(logits: Logits) -> Array:
    """Return logits [examples, classes] as float64 [classes, examples]."""
    return np.ascontiguousarray(logits.T, np.float64)


def log_softmax(logits: Array) -> Array:
    """Return `logit_distance.log_softmax` of each column."""
    highest = logits.max(axis=0, initial=-np.inf)
    below = logits - highest
    found: Array = below - np.log(np.exp(below).sum(axis=0))
    return found


def root_mean_square(values: Array) -> float:
    """Return the root mean square of all values."""
    return float(np.sqrt(np.square(values).mean()))
