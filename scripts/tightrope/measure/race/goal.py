"""Variants that meet the bounds of a goal, so that the fastest of these race too."""

from collections.abc import Iterable, Mapping
from typing import Any

from tightrope.machine.interference import fewest_pairs, undisturbed
from tightrope.measure.race.candidates import Measured
from tightrope.records.finalists import Candidate
from tightrope.records.latency import LatencyRecord
from tightrope.statistics import percentile

MILLISECONDS, MEGABYTE = 1000.0, 1e6


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
    shape = record.shapes[place]
    kept = undisturbed(shape)
    if len(kept) < fewest_pairs(len(shape["pairs"]), record.plan):
        kept = list(range(len(shape["pairs"])))  # the candidate is one that was accepted disturbed
    samples = [sample for index in kept for sample in shape["blocks_s"][index]]
    seconds = percentile(samples, 99)
    return None if seconds is None else MILLISECONDS * seconds


def memory_mb(record: LatencyRecord) -> float | None:
    """Return the peak resident memory in MB (10^6 bytes), None where it is not known."""
    return None if record.peak_rss_bytes is None else record.peak_rss_bytes / MEGABYTE
