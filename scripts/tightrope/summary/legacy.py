"""TEMPORARY."""

from typing import Any, TypedDict

from tightrope.statistics import AccuracyVerdict, Interval
from tightrope.summary.result_types import Ratio, Shape
from tightrope.summary.result_types import interval_of as interval_of


class AccuracyChange(TypedDict):
    delta: float | None
    delta_low: float | None
    delta_high: float | None
    gained: int | None
    lost: int | None
    p_value: float | None
    detectable: float | None
    large_enough: bool | None
    samples_needed: int | None


class ReferenceAccuracy(AccuracyChange):
    top1: float
    low: float
    high: float
    samples: int
    verdict: AccuracyVerdict | None


def nothing(kind: Any) -> Any:
    return dict.fromkeys(kind.__annotations__)


def ratio_entry(ratio: Interval) -> Any:
    return Ratio.of(ratio)


def change_of(accuracy: Any) -> Interval | None:
    if accuracy["delta"] is None:
        return None
    return Interval(accuracy["delta"], accuracy["delta_low"], accuracy["delta_high"])


def shape_of(row: Any) -> Shape:
    return getattr(row, "shape", None) or Shape(**row)
NO_CHANGE = nothing(AccuracyChange)
