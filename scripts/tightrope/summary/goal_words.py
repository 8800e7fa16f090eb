"""A goal and its decision in words: one plain sentence, and reasons against variants."""

from collections.abc import Iterable, Mapping

from tightrope.summary.goal_bounds import given, how_far
from tightrope.summary.goal_candidates import Candidate
from tightrope.summary.goal_types import Bound, BoundCost, Goal, Miss, Nearest
from tightrope.summary.result_types import Shape

NAMES: Mapping[Bound, str] = {
    "p99_ms": "p99",
    "memory_mb": "memory",
    "accuracy_points": "accuracy loss",
}
BOUND_UNITS: Mapping[Bound, str] = {
    "p99_ms": "ms",
    "memory_mb": "MB",
    "accuracy_points": "points",
}
# a bound that costs less than this is said to cost nothing
NOTHING = 0.0005


def number(value: float) -> str:
    """Format a number with three significant digits, without an exponent."""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def limit_words(bound: Bound, limit: float) -> str:
    """Format a bound: `p99 at most 5 ms`."""
    return f"{NAMES[bound]} at most {number(limit)} {BOUND_UNITS[bound]}"


def shape_words(shape: Shape) -> str:
    """Format a shape: `batch 1, sequence 64`."""
    return ", ".join(f"{name} {size}" for name, size in shape.items())


def goal_words(goal: Goal, shape: Shape | None) -> str:
    """Format a goal with its bounds: `least latency at batch 1, sequence 64 with p99 …`."""
    where = f" at {shape_words(shape)}" if shape else ""
    if goal["traffic"]:
        where = f" under {goal['traffic'].replace('_', ' ')} traffic"
    bounds = " and ".join(limit_words(*one) for one in given(goal))
    return f"least {goal['minimize']}{where}" + (f" with {bounds}" if bounds else "")


def sentence(
    goal: Goal,
    shape: Shape | None,
    unit: str,
    chosen: Candidate | None,
    bounds: Iterable[BoundCost],
    nearest: Nearest | None,
    pace: str,
) -> str:
    """Return the decision in one sentence, with its `pace` and with what each bound cost."""
    words = f"For the {goal_words(goal, chosen.shape if chosen else shape)}"
    if chosen is not None and chosen.value is not None:
        padding = f", padding {chosen.padding}" if chosen.padding else ""
        told = "; ".join(one["words"] for one in bounds)
        value = f"{number(chosen.value)} {unit}{pace}"
        return f"{words}: {chosen.variant}, {value}{padding}" + (f"; {told}" if told else "")
    if nearest is None:
        return f"{words}: no variant qualifies"
    known = all(one["value"] is not None for one in nearest["misses"])
    meets = "meets it" if known else "is known to meet it"
    missed = " and ".join(map(miss_words, nearest["misses"]))
    return f"{words}: no variant {meets}; the nearest is {nearest['variant']}: {missed}"


def pace_words(chosen: Candidate, candidates: Iterable[Candidate], fastest: str | None) -> str:
    """Return how much slower than the winner of the race at its shape the choice is.

    Empty where one of the two times is not known.
    """
    if chosen.variant == fastest:
        return ", the fastest"
    winner = next((one for one in candidates if one.variant == fastest), None)
    own, best = seconds_of(chosen), seconds_of(winner)
    if own is None or best is None:
        return ""
    return f", with {number(own / best)} times the latency of {fastest}, the fastest"


def seconds_of(candidate: Candidate | None) -> float | None:
    """Return the seconds per call at the shape of a candidate, None if they are not known."""
    return candidate.row["paired_s"] if candidate and candidate.row else None


def bound_words(
    goal: Goal, bound: Bound, limit: float, more: float | None, free: Candidate | None
) -> str:
    """Return what a bound cost: `p99 at most 5 ms costs 12 % more latency (without it: …)`."""
    words = limit_words(bound, limit)
    if more is None or free is None:
        return f"{words}: what it costs is not known"
    if more < NOTHING:
        return f"{words} costs nothing"
    return f"{words} costs {number(100 * more)} % more {goal['minimize']} than {free.variant}"


def miss_words(miss: Miss) -> str:
    """Return how far a bound is missed: `p99 7.2 ms, 2.2 ms over the bound of 5 ms`."""
    name, unit = NAMES[miss["bound"]], BOUND_UNITS[miss["bound"]]
    if miss["value"] is None or miss["by"] is None:
        return f"{name} not known: {miss['why']}"
    if miss["bound"] == "accuracy_points":
        name = "accuracy loss may be"
    value, over, limit = (number(one) for one in (miss["value"], miss["by"], miss["limit"]))
    return f"{name} {value} {unit}, {over} {unit} over the bound of {limit} {unit}"


def decisive(missed: list[Miss]) -> str:
    """Return the reason against a variant: the bound that it misses by the largest fraction."""
    return miss_words(max(missed, key=how_far))


def worse(goal: Goal, candidate: Candidate, chosen: Candidate, unit: str) -> str:
    """Return why a variant that meets the goal is not the one."""
    if candidate.value is None or chosen.value is None:
        return f"its {goal['minimize']} was not measured"
    if candidate.value <= chosen.value:
        return f"not slower by estimate, but not the winner of the race: {chosen.variant} is"
    own, best = number(candidate.value), number(chosen.value)
    return f"more {goal['minimize']}: {own} {unit}, {chosen.variant} has {best}"
