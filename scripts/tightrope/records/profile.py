"""Record of a profile: the operators of one variant at each shape, and what bounds its calls."""

from dataclasses import dataclass, field
from typing import Any, ClassVar

from tightrope.records.contents import ProfiledShape
from tightrope.records.record import Record


@dataclass(kw_only=True)
class ProfileRecord(Record):
    """Where the time of a call goes, for each of `shapes`.

    A shape holds its sizes, `call_s` (the mean of calls without a profiler), `padding` (the share
    of its tokens or images that only pads the request), `operators` (the longest, see
    `OperatorTime`; seconds per call), `groups` (seconds, operations and bytes of all operators, by
    group, and seconds by type), and `bound`, `shares`, `outside_s` and `profiler_factor` of
    `measure.profile.bounds.verdict`. Where the runtime has no profiler, `operators` is empty and
    `unprofiled` has the reason. `peaks` are those of the machine.
    """

    CONTENTS: ClassVar[dict[str, Any]] = {"shapes": list[ProfiledShape]}

    threads: int
    peaks: dict[str, Any]
    unprofiled: str | None = None
    shapes: list[dict[str, Any]] = field(default_factory=list)
