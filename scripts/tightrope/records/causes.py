"""Record of causes: a variant beside the same engine without each cause of its time."""

from dataclasses import dataclass, field
from typing import Any, ClassVar

from tightrope.records.contents import Sized
from tightrope.records.record import Record
from tightrope.records.rounds import Round


class RemovedCause(Sized, total=False):
    """An entry of `causes` of a CausesRecord, see there."""

    cause: str
    setting: str
    low: float
    high: float
    profiled_s: float
    reason: str | None
    rounds: list[Round]


# begins the names of the inputs of a build among those of the job
PREFIX = "build_"


@dataclass(kw_only=True)
class CausesRecord(Record):
    """Calls of a variant beside those of an engine without the cause, for each cause and shape.

    Each of `causes` holds the sizes of its shape, the `cause` in words, the `setting` that removes
    it, the predicted saving from `low` to `high` as shares of a call, see `measure.causes.predict`,
    and `profiled_s`, its seconds when it was profiled. `rounds` are those of two engines, the
    variant and the one without the cause; where that could not be built or run there are none, and
    `reason` says why.

    `lost_s` are the seconds lost to other load, `busiest` the cores that the busiest programs used,
    by name.
    """

    CONTENTS: ClassVar[dict[str, Any]] = {"causes": list[RemovedCause]}

    threads: int
    processors: list[int]
    lost_s: float = 0.0
    busiest: dict[str, float] = field(default_factory=dict)
    causes: list[dict[str, Any]] = field(default_factory=list)
