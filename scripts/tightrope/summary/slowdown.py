"""A time over another one, and whether the difference matters."""

from typing import TypedDict

from tightrope.statistics import Interval

# the smallest ratio of two times that a user is told of
MATTERS = 1.10


class Slowdown(TypedDict):
    """One time over another with its 95 % interval.

    It `matters` where the whole interval is above 1.10.
    """

    ratio: float
    low: float
    high: float
    matters: bool


def slowdown_entry(ratio: Interval) -> Slowdown:
    """Return one time over another with its interval, and whether it matters."""
    return {
        "ratio": ratio.value,
        "low": ratio.low,
        "high": ratio.high,
        "matters": ratio.low > MATTERS,
    }
