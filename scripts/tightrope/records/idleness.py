"""Record of idleness: the first call after a pause, paired with calls back to back."""

import math
import statistics
from collections.abc import Iterable, Sequence
from typing import Any, ClassVar, TypedDict

from tightrope.machine.interference import MAX_FOREIGN_CORES
from tightrope.records.record import Record, Sized, WarmUp
from tightrope.statistics import Interval, trimmed_mean

# fewest undisturbed calls after a pause for a number
FEWEST = 5


class PausedCall(TypedDict, total=False):
    """An entry of `calls` of an IdlenessRecord, see there."""

    pause_s: float
    paused_s: float
    block_s: list[float]
    call_s: float
    foreign_cores: float


class IdlenessRecord(Record, kw_only=True):
    """Calls of an engine directly after a pause, in the order in which they were made.

    Each of `calls` holds `pause_s`, the pause that was asked for; `paused_s`, the time between the
    end of the block before it and the call; `block_s`, the seconds per call of that block, back to
    back; `call_s`, the seconds of the call; and `foreign_cores`, the cores of its processors that
    other programs used from the start of the block to the end of the call.

    `shape` holds the sizes of the inputs, `plan` the `pauses` and `max_seconds` of the `idleness`
    settings, `warmup` is that of `TimedEngine.warm_up`. `spent_s` are the seconds of all calls and
    pauses, `lost_s` those lost to other load besides, `busiest` the cores that the busiest programs
    used, by name. A failed record has no calls.
    """

    CONTENTS: ClassVar[dict[str, Any]] = {"calls": list[PausedCall], "shape": Sized}

    threads: int
    processors: list[int]
    plan: dict[str, Any]
    shape: dict[str, int]
    warmup: WarmUp = {}
    spent_s: float = 0.0
    lost_s: float = 0.0
    busiest: dict[str, float] = {}
    calls: list[dict[str, Any]] = []


def after(record: IdlenessRecord, pause_s: float) -> list[dict[str, Any]]:
    """Return the calls after the pauses of this length."""
    return [call for call in record.calls if call["pause_s"] == pause_s]


def undisturbed(calls: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the calls that no other load disturbed, neither in the pause nor around it."""
    return [call for call in calls if call["foreign_cores"] <= MAX_FOREIGN_CORES]


def slowdown(calls: Sequence[dict[str, Any]]) -> Interval:
    """Return the time of the call after a pause over that of a call back to back.

    The exponential of the trimmed mean of the log ratios of each call to the median of the block
    directly before its pause, so that a machine that changes its speed slowly changes both.
    """
    logs = [math.log(call["call_s"] / statistics.median(call["block_s"])) for call in calls]
    middle = trimmed_mean(logs)
    if middle.high == math.inf:
        return Interval(math.exp(middle.value), 0.0, math.inf)
    return Interval(*map(math.exp, middle))
