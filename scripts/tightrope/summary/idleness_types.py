"""Types of the entries on idleness in summary.json.

docs/summary-json.md describes the fields. Times are in seconds; None means not known.
"""

from typing import TypedDict

from tightrope.summary.measured import Measured
from tightrope.summary.result_types import Shape
from tightrope.summary.slowdown import Slowdown


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
