"""Ratios of times in summary.json, and the intervals in them."""

from tightrope.statistics import Interval, speed_verdict
from tightrope.summary.result_types import Ratio


def interval_of(entry: Ratio | None) -> Interval | None:
    """Return the interval of a ratio of times, None if it was not measured."""
    if entry is None or entry["ratio"] is None or entry["low"] is None or entry["high"] is None:
        return None
    return Interval(entry["ratio"], entry["low"], entry["high"])


def ratio_entry(ratio: Interval) -> Ratio:
    """Return a ratio of times with its interval and verdict."""
    return {
        "ratio": ratio.value,
        "low": ratio.low,
        "high": ratio.high,
        "verdict": speed_verdict(ratio),
    }
