"""The rungs of a search for a smaller model, and when it ends."""

from collections.abc import Sequence
from typing import Any, Literal, NamedTuple, TypedDict

# speed-ups over the parent in float that structures are chosen for; 1 keeps the structure
LADDER = (1.0, 1.5, 2.0, 3.0, 4.0, 6.0, 8.0)
Ending = Literal["target met", "budget exceeded", "time over", "smallest structure", "not built"]


class Asked(NamedTuple):
    """What is asked for: a speed-up over the baseline of the parent, and two limits.

    `budget` is the largest loss of accuracy, a fraction; `seconds` ends the search after a rung.
    """

    target: float
    budget: float
    seconds: float


class Rung(TypedDict):
    """A smaller model that was trained, built and measured.

    `factor` is that of LADDER, `prune` what is kept, as `pruning.prune` takes it, `delta` the
    change of accuracy on the calibration split against the parent's baseline, a fraction, with its
    interval, `speedup` that over the same baseline with its interval, and `seconds` what the rung
    took. `reason` says why a rung could not be trained, built or run; then it has neither.
    """

    factor: float
    structure: dict[str, Any]
    prune: dict[str, Any]
    parameters: int | None
    delta: float | None
    delta_low: float | None
    delta_high: float | None
    speedup: float | None
    speedup_low: float | None
    speedup_high: float | None
    seconds: float
    reason: str | None


def is_within(rung: Rung, asked: Asked) -> bool:
    """Return whether the estimated loss of accuracy is within the budget."""
    return rung["delta"] is not None and rung["delta"] >= -asked.budget


def ending(rungs: Sequence[Rung], asked: Asked) -> Ending | None:
    """Return why a search ends after these rungs, None where it goes on.

    A smaller model is less accurate than a larger one, so the first that exceeds the budget ends
    it; so does the first that meets the target, because no smaller one is needed.
    """
    last = rungs[-1]
    if last["reason"] is not None:
        return "not built"
    if not is_within(last, asked):
        return "budget exceeded"
    if last["speedup"] is not None and last["speedup"] >= asked.target:
        return "target met"
    if len(rungs) > 1 and last["structure"] == rungs[-2]["structure"]:
        return "smallest structure"
    if len(rungs) == len(LADDER):
        return "smallest structure"
    return "time over" if sum(one["seconds"] for one in rungs) > asked.seconds else None


def chosen(rungs: Sequence[Rung], asked: Asked) -> Rung | None:
    """Return the fastest rung within the budget, None where none is."""
    within = [one for one in rungs if is_within(one, asked)]
    return max(within, key=lambda one: one["speedup"] or 0.0, default=None)
