"""Steps in a series of measurements with errors: change points by binary segmentation."""

import math
from collections.abc import Sequence
from typing import NamedTuple

from tightrope.statistics import LEVEL, student_point

# fewest measurements on each side of a step: one alone may be an accident
FEWEST = 2


class Measured(NamedTuple):
    """A logarithm with its standard error."""

    value: float
    error: float


class Step(NamedTuple):
    """A step before the measurement `place`: the ratio of the sides, with its 95 % interval."""

    place: int
    ratio: float
    low: float
    high: float


def steps(series: Sequence[Measured]) -> list[Step]:
    """Return the steps of a series in their order.

    Binary segmentation (Scott and Knott 1974, "A Cluster Analysis Method for Grouping Means in the
    Analysis of Variance"): the split with the largest difference in standard errors counts if it is
    beyond Student's t at `LEVEL` divided by the number of splits (Bonferroni); both sides are then
    searched in the same way.
    """
    return sorted(found_in(series, 0, len(series)), key=lambda one: one.place)


def found_in(series: Sequence[Measured], start: int, end: int) -> list[Step]:
    """Return the steps of a part of the series."""
    places = range(start + FEWEST, end - FEWEST + 1)
    if not places:
        return []
    splits = {place: split(series[start:place], series[place:end]) for place in places}
    best = max(places, key=lambda place: abs(splits[place][0]) / splits[place][1])
    value, error = splits[best]
    degrees = end - start - 2
    if abs(value) / error <= student_point(degrees, LEVEL / len(places)):
        return []
    off = student_point(degrees) * error
    step = Step(best, *(math.exp(one) for one in (value, value - off, value + off)))
    return [*found_in(series, start, best), step, *found_in(series, best, end)]


def split(before: Sequence[Measured], after: Sequence[Measured]) -> tuple[float, float]:
    """Return the difference of the means of two sides, weighted by errors, and its standard error.

    The error is the larger of what those of the measurements give and of what their scatter
    within the sides gives.
    """
    sides = [weighted(one) for one in (before, after)]
    chi_squared = sum(one.squares for one in sides)
    scatter = max(1.0, chi_squared / (len(before) + len(after) - 2))
    error = math.sqrt(scatter * sum(1 / one.weight for one in sides))
    return sides[1].mean - sides[0].mean, error


class Side(NamedTuple):
    """Mean of a side, its weight, and the weighted squares of the distances from the mean."""

    mean: float
    weight: float
    squares: float


def weighted(side: Sequence[Measured]) -> Side:
    """Return the mean of a side, each measurement weighted by the inverse of its variance."""
    weights = [1 / one.error**2 for one in side]
    total = math.fsum(weights)
    mean = math.fsum(w * one.value for w, one in zip(weights, side, strict=True)) / total
    squares = (w * (one.value - mean) ** 2 for w, one in zip(weights, side, strict=True))
    return Side(mean, total, math.fsum(squares))
