"""Record of throughput: calls of several instances of an engine, by threads and batch."""

from typing import Any, ClassVar, TypedDict

from tightrope.records.record import Record
from tightrope.statistics import Interval, percentile, trimmed_mean


class Point(TypedDict, total=False):
    """An entry of `points` of a ThroughputRecord, see there."""

    instances: int
    threads: int
    batch: int
    skipped: bool
    reason: str | None
    seconds: float
    blocks_s: list[list[list[float]]]
    waited_s: list[float | None]
    late_s: list[float]
    foreign_cores: float | None
    peak_rss_bytes: int


class ThroughputRecord(Record, kw_only=True):
    """Calls in a closed loop of one or more instances of an engine, each on cores of its own.

    Each of `points` holds `instances`, `threads` of each, `batch` and `reason`: why it has no
    numbers, None where it has. It was `skipped`, or else it failed. With numbers it holds
    - `seconds`, the window in which all instances ran;
    - `blocks_s`, for each instance and block of the window the seconds of the calls that ended in
      it; times are to 0.1 microseconds;
    - `waited_s`, for each instance the seconds in which its threads had no processor (None where
      the kernel does not report it), and `late_s`, by how much it began after the window;
    - `foreign_cores`, the cores of its processors that other programs used meanwhile;
    - `peak_rss_bytes`, the memory of all instances, pages that they share counted for each.

    `processors` are those that the instances share among them, `cores` their number. `sequence` is
    that of texts, `height` and `width` those of images. `plan` holds the `throughput` settings.
    `spent_s` are the seconds of all points with loads, `lost_s` those lost to other load besides,
    `busiest` the cores that the busiest programs used, by name. A failed record has no points with
    numbers.
    """

    CONTENTS: ClassVar[dict[str, Any]] = {"points": list[Point]}

    plan: dict[str, Any]
    processors: list[int]
    cores: int
    sequence: int | None = None
    height: int | None = None
    width: int | None = None
    spent_s: float = 0.0
    lost_s: float = 0.0
    busiest: dict[str, float] = {}
    points: list[dict[str, Any]] = []


def block_rates(point: dict[str, Any]) -> list[float]:
    """Return the samples per second of each block in which a call of each instance ended.

    The sum over the instances; the clock of each runs from the end of a call to that of a later
    one.
    """
    return [
        sum(point["batch"] * len(calls) / sum(calls) for calls in block)
        for block in zip(*point["blocks_s"], strict=True)
        if all(block)
    ]


def samples_per_second(point: dict[str, Any]) -> Interval | None:
    """Return the samples per second with its interval, None with fewer than four blocks."""
    rates = block_rates(point)
    return trimmed_mean(rates) if len(rates) >= 4 else None


def call_seconds(point: dict[str, Any]) -> list[float]:
    """Return the seconds of all calls of all instances."""
    return [call for instance in point["blocks_s"] for block in instance for call in block]


def call_percentile(point: dict[str, Any], percent: int) -> float | None:
    """Return a percentile of the seconds per call, None with too few calls to support it."""
    return percentile(call_seconds(point), percent)
