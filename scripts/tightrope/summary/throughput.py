"""Throughput entries of summary.json. Times are in seconds; None means not known."""

from collections.abc import Iterable, Sequence
from typing import Any, TypedDict

from tightrope.machine.interference import MAX_FOREIGN_CORES
from tightrope.records.throughput import (
    ThroughputRecord,
    block_rates,
    call_percentile,
    call_seconds,
    samples_per_second,
)
from tightrope.statistics import unpaired_speedup
from tightrope.summary.measured import Measured, disturbed_while, measured_entry
from tightrope.summary.result_types import Ratio, nothing, ratio_entry

Facts = dict[str, Any]
# fields that an entry has of its point as they are
COPIED = ("instances", "threads", "batch", "skipped", "reason", "foreign_cores", "peak_rss_bytes")
TOO_SLOW = "the calls were too slow: fewer than four blocks had one of each instance"


class ThroughputPoint(TypedDict):
    """So many instances with so many threads each, at one batch.

    `reason` says why there are no numbers: the point was `skipped`, or else it failed.
    `foreign_cores` are those that other programs used; `disturbed` says that it was too many, and
    the numbers are None unless they are `provisional`.
    """

    instances: int
    threads: int
    batch: int
    skipped: bool
    reason: str | None
    disturbed: str | None
    provisional: bool
    samples_per_s: float | None
    low: float | None
    high: float | None
    calls: int | None
    p50_s: float | None
    p99_s: float | None
    foreign_cores: float | None
    peak_rss_bytes: int | None


class Throughput(Measured):
    """Throughput of a variant by instances, threads and batch.

    `single` is the fastest point of one instance with all threads, `gain` the samples per second
    of `best` over it; `best_within_bound` is the fastest whose p99 is known and within
    `p99_bound_s`.
    """

    cores: int
    sequence: int | None
    height: int | None
    width: int | None
    p99_bound_s: float | None
    spent_s: float
    points: list[ThroughputPoint]
    best: ThroughputPoint | None
    best_within_bound: ThroughputPoint | None
    single: ThroughputPoint | None
    gain: Ratio | None


def throughput_entry(record: ThroughputRecord, *, accept_disturbed: bool = False) -> Throughput:
    """Return the entry of a throughput record.

    A point that other load disturbed has no numbers; with `accept_disturbed` it has, and is
    `provisional`. `best` and `single` are of the points with numbers.
    """
    points = [point_entry(point, record, accept_disturbed) for point in record.points]
    bound_ms = record.plan["p99_ms"]
    bound_s = None if bound_ms is None else bound_ms / 1000
    best = fastest(points)
    within = [one for one in points if bound_s and one["p99_s"] and one["p99_s"] <= bound_s]
    single = fastest(
        one for one in points if (one["instances"], one["threads"]) == (1, record.cores)
    )
    return {
        **measured_entry(record),
        "cores": record.cores,
        "sequence": record.sequence,
        "height": record.height,
        "width": record.width,
        "p99_bound_s": bound_s,
        "spent_s": record.spent_s,
        "points": points,
        "best": best,
        "best_within_bound": fastest(within),
        "single": single,
        "gain": gain_entry(record.points, points, best, single),
    }


def point_entry(point: Facts, record: ThroughputRecord, accept_disturbed: bool) -> ThroughputPoint:
    """Return an entry of `points`."""
    known: Any = {name: point.get(name) for name in COPIED}
    entry: ThroughputPoint = {**nothing(ThroughputPoint), **known, "provisional": False}
    if point["reason"] is not None:
        return entry
    if point["foreign_cores"] > MAX_FOREIGN_CORES:
        entry["disturbed"] = disturbed_while("it", point["foreign_cores"], record.busiest)
        entry["provisional"] = accept_disturbed
        if not accept_disturbed:
            return entry
    rate = samples_per_second(point)
    if rate is None:
        why = None if entry["disturbed"] else TOO_SLOW
        return {**entry, "provisional": False, "reason": why}
    return {
        **entry,
        "samples_per_s": rate.value,
        "low": max(0.0, rate.low),
        "high": rate.high,
        "calls": len(call_seconds(point)),
        "p50_s": call_percentile(point, 50),
        "p99_s": call_percentile(point, 99),
    }


def fastest(points: Iterable[ThroughputPoint]) -> ThroughputPoint | None:
    """Return the point with the most samples per second, None without a number."""
    return max(
        (one for one in points if one["samples_per_s"] is not None),
        key=lambda one: one["samples_per_s"] or 0.0,
        default=None,
    )


def gain_entry(
    measured: Sequence[Facts],
    points: Sequence[ThroughputPoint],
    best: ThroughputPoint | None,
    single: ThroughputPoint | None,
) -> Ratio | None:
    """Return the samples per second of `best` over `single`, None where they are the same point.

    From the blocks of both. `points` are the entries of the `measured` points.
    """
    if best is None or single is None or best is single:
        return None
    own, other = (
        [1 / rate for rate in block_rates(measured[points.index(one)])] for one in (best, single)
    )
    return ratio_entry(unpaired_speedup(own, other))
