"""Idleness entries of summary.json. Times are in seconds; None means not known."""

import statistics
from typing import TypedDict, cast

from tightrope.records.idleness import FEWEST, IdlenessRecord, after, slowdown, undisturbed
from tightrope.statistics import Interval
from tightrope.summary.measured import Measured, disturbed_while, measured_entry
from tightrope.summary.result_types import Shape

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


class Pause(TypedDict):
    """The first calls after pauses of one length.

    `slowdown` is over calls back to back. Without it `reason` says why: `calls`, those that count,
    were too few. `disturbed_calls` do not count; `disturbed` says that too many of them are, and
    the numbers are None unless they are `provisional`.
    """

    pause_s: float
    calls: int
    disturbed_calls: int
    first_call_s: float | None
    slowdown: Slowdown | None
    reason: str | None
    disturbed: str | None
    provisional: bool


class Idleness(Measured):
    """The first call of a variant after pauses, at one shape.

    `back_to_back_s` is the median over the blocks of calls before the pauses.
    """

    shape: Shape
    back_to_back_s: float | None
    spent_s: float
    pauses: list[Pause]


def idleness_entry(record: IdlenessRecord, *, accept_disturbed: bool = False) -> Idleness:
    """Return the entry of an idleness record; shorter pauses come first.

    A pause after which other load left too few calls has no numbers; with `accept_disturbed` all
    calls count for it, and it is `provisional`.
    """
    blocks = [statistics.median(call["block_s"]) for call in record.calls]
    measured = record.status == "ok"
    pauses = sorted(record.plan["pauses"]) if measured else []
    return {
        **measured_entry(record),
        "shape": cast(Shape, record.shape),
        "back_to_back_s": statistics.median(blocks) if blocks else None,
        "spent_s": record.spent_s,
        "pauses": [pause_entry(record, pause, accept_disturbed) for pause in pauses],
    }


def pause_entry(record: IdlenessRecord, pause_s: float, accept_disturbed: bool) -> Pause:
    """Return the entry of the pauses of one length."""
    calls = after(record, pause_s)
    kept = undisturbed(calls)
    why = why_disturbed(record, pause_s)
    provisional = why is not None and accept_disturbed
    counted = calls if provisional else kept
    enough = len(counted) >= FEWEST
    return {
        "pause_s": pause_s,
        "calls": len(counted),
        "disturbed_calls": len(calls) - len(kept),
        "first_call_s": statistics.median(call["call_s"] for call in counted) if enough else None,
        "slowdown": slowdown_entry(slowdown(counted)) if enough else None,
        "reason": too_few(record, len(calls)) if len(calls) < FEWEST else None,
        "disturbed": why,
        "provisional": provisional,
    }


def why_disturbed(record: IdlenessRecord, pause_s: float) -> str | None:
    """Return why other load left too few calls after these pauses; None where it did not."""
    calls = after(record, pause_s)
    if len(calls) < FEWEST or len(undisturbed(calls)) >= FEWEST:
        return None
    cores = max(call["foreign_cores"] for call in calls)
    return disturbed_while(f"pauses of {pause_s:g} s", cores, record.busiest)


def too_few(record: IdlenessRecord, calls: int) -> str:
    """Say that the time was too short for the calls that an interval needs."""
    limit = record.plan["max_seconds"]
    return f"only {calls} calls within max_seconds = {limit:g}; an interval needs {FEWEST}"
