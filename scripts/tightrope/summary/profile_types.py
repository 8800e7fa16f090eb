"""Types of the entries on profiles in summary.json.

docs/summary-json.md describes the fields. Times are in seconds per call; None means not known.
"""

from typing import Literal, TypedDict

from tightrope.summary.result_types import Attempt

Bound = Literal["compute", "memory", "overhead"]


class OperatorGroup(TypedDict):
    """Operators of one group: their time scaled to the call, its share of it, and what they do."""

    group: str
    seconds: float
    share: float
    operations: float
    bytes: float
    count: int


class LongOperator(TypedDict):
    """One of the longest operators, in the runtime's words."""

    name: str
    kind: str
    group: str
    type: str
    seconds: float
    share: float


class ProfiledCall(TypedDict):
    """Where the time of a call goes; without a profiler only `call_s` is known.

    `shares` are those of compute, memory and overhead; `outside` is the share that no operator
    takes. `profiler_factor` scales the operators' times where a profiler made them too long.
    """

    batch: int
    sequence: int | None
    height: int | None
    width: int | None
    call_s: float
    bound: Bound | None
    shares: dict[Bound, float] | None
    outside: float | None
    profiler_factor: float | None
    groups: list[OperatorGroup]
    operators: list[LongOperator]


class Profile(TypedDict):
    """The profile of a variant; `unprofiled` says why its operators are not timed."""

    model: str
    variant: str
    host: str
    status: Attempt
    reason: str | None
    measured: str
    unprofiled: str | None
    shapes: list[ProfiledCall]
