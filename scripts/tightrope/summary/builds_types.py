"""Types of the entries on builds in summary.json.

docs/summary-json.md describes the fields. Times are in seconds; None means not known.
"""

from typing import TypedDict

from tightrope.summary.measured import Measured
from tightrope.summary.result_types import Shape
from tightrope.summary.slowdown import Slowdown


class Build(TypedDict):
    """One of several builds of an engine.

    `call_s` has the 95 % interval `low` to `high`; `over_median` is its time over that of the
    median build, None for that build itself.
    """

    build_s: float
    size_bytes: int
    call_s: float | None
    low: float | None
    high: float | None
    over_median: Slowdown | None


class Builds(Measured):
    """Builds of a variant from the same files, in their order, timed in shared rounds.

    `spread` is the time of the slowest over that of the fastest. `identical` is whether all their
    files are the same. `rounds` count; `disturbed_rounds` do not. `disturbed` says that too many of
    them are, and the numbers are None unless they are `provisional`.
    """

    shape: Shape
    builds: list[Build]
    spread: Slowdown | None
    sizes_differ: bool | None
    identical: bool | None
    rounds: int
    disturbed_rounds: int
    disturbed: str | None
    provisional: bool
