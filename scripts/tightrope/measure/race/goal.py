"""Variants that race for a goal besides those that may be the fastest of all."""

from collections.abc import Iterable, Mapping
from typing import Any

from tightrope.machine.interference import fewest_pairs, undisturbed
from tightrope.measure.race.candidates import Measured
from tightrope.records.finalists import Candidate
from tightrope.records.latency import LatencyRecord, joules_per_call
from tightrope.statistics import percentile

MILLISECONDS, MEGABYTE = 1000.0, 1e6


def racing_for(
    goal: Mapping[str, Any],
    candidates: Iterable[Candidate],
    measured: Mapping[str, Measured],
    place: int,
) -> list[Candidate]:
    """Return the candidates that race for a goal at the shape with index `place`.

    For a goal of time those that meet its bounds. No race of times decides memory or energy: of
    these goals it is the one with the least that meets the bounds, to compare its time with that
    of the fastest. None where that is not known.
    """
    within = meeting(goal, candidates, measured, place)
    if goal["minimize"] == "time":
        return within
    known = [(value, one) for one in within if (value := needs(goal, measured[one.variant], place))]
    return [min(known, key=lambda pair: pair[0])[1]] if known else []


def needs(goal: Mapping[str, Any], one: Measured, place: int) -> float | None:
    """Return the memory or energy that a goal minimizes, in MB or J, None if it is not known."""
    if goal["minimize"] == "memory":
        return memory_mb(one.latency)
    return joules_per_call(one.latency.shapes[place], counted(one.latency, place))


def meeting(
    bounds: Mapping[str, Any],
    candidates: Iterable[Candidate],
    measured: Mapping[str, Measured],
    place: int,
) -> list[Candidate]:
    """Return the candidates with kept accuracy that meet `p99_ms` and `memory_mb` of the bounds.

    `place` is the index of the shape. None is no bound, a value that is not known meets none.
    """
    return [
        one
        for one in candidates
        if one.standing == 0
        and is_within(p99_ms(measured[one.variant].latency, place), bounds["p99_ms"])
        and is_within(memory_mb(measured[one.variant].latency), bounds["memory_mb"])
    ]


def is_within(value: float | None, limit: float | None) -> bool:
    """Return whether a value is within a bound."""
    return limit is None or (value is not None and value <= limit)


def p99_ms(record: LatencyRecord, place: int) -> float | None:
    """Return the p99 of the calls of undisturbed blocks at a shape in ms, None with too few."""
    blocks = record.shapes[place]["blocks_s"]
    samples = [sample for index in counted(record, place) for sample in blocks[index]]
    seconds = percentile(samples, 99)
    return None if seconds is None else MILLISECONDS * seconds


def counted(record: LatencyRecord, place: int) -> list[int]:
    """Return the undisturbed blocks at a shape, all of a candidate that was accepted disturbed."""
    shape = record.shapes[place]
    kept = undisturbed(shape)
    if len(kept) < fewest_pairs(len(shape["pairs"]), record.plan):
        return list(range(len(shape["pairs"])))
    return kept


def memory_mb(record: LatencyRecord) -> float | None:
    """Return the peak resident memory in MB (10^6 bytes), None where it is not known."""
    return None if record.peak_rss_bytes is None else record.peak_rss_bytes / MEGABYTE
