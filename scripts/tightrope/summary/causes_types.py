"""Types of the entries on removed causes in summary.json.

docs/summary-json.md describes the fields. Times are in seconds per call; None means not known.
"""

from typing import TypedDict

from tightrope.summary.measured import Measured


class Saving(TypedDict):
    """Seconds per call that an engine without the cause takes less, with the 95 % interval."""

    value: float
    low: float
    high: float


class RemovedCause(TypedDict):
    """A cause of the time of a call at one shape, and what the setting that removes it saves.

    The saving is predicted from `predicted_low` to `predicted_high`, as shares of the call; `saved`
    is measured beside the variant, whose call takes `call_s`. It is `within` where both intervals
    have a point in common. `rounds` count; `disturbed_rounds` do not. `disturbed` says that too
    many of them are, and the numbers are None unless they are `provisional`. `reason` says why it
    could not be measured.
    """

    batch: int
    sequence: int | None
    height: int | None
    width: int | None
    cause: str
    setting: str
    predicted_low: float
    predicted_high: float
    call_s: float | None
    saved: Saving | None
    within: bool | None
    rounds: int
    disturbed_rounds: int
    disturbed: str | None
    provisional: bool
    reason: str | None


class Causes(Measured):
    """The causes of a profiled variant's time that a setting removes."""

    causes: list[RemovedCause]
