"""Bounds of a goal: which of them a candidate misses, and by how much.

A bound is checked at the end of the measured interval that speaks against the variant: the low end
of the change of accuracy. The 99th percentile and the memory have no interval.
"""

import math

from tightrope.summary.goal_candidates import Candidate, memory_mb, why_no_p99
from tightrope.summary.goal_types import Bound, Goal, Miss
from tightrope.summary.reasons import unkept
from tightrope.summary.result_types import Result

BOUNDS: tuple[Bound, ...] = ("p99_ms", "memory_mb", "accuracy_points")


def given(goal: Goal) -> list[tuple[Bound, float]]:
    """Return the bounds of the goal with their limits."""
    return [(bound, limit) for bound in BOUNDS if (limit := goal[bound]) is not None]


def misses(candidate: Candidate, goal: Goal, budget_points: float) -> list[Miss]:
    """Return the bounds that a candidate misses; one that is not known is missed too.

    `budget_points` is the budget by which the summary judged accuracy.
    """
    found: list[Miss] = []
    for bound, limit in given(goal):
        value = value_of(bound, candidate, limit, budget_points)
        if value is None or value > limit:
            by = None if value is None else value - limit
            why = why_unknown(bound, candidate, limit) if value is None else None
            found.append({"bound": bound, "limit": limit, "value": value, "by": by, "why": why})
    return sorted(found, key=how_far, reverse=True)


def value_of(
    bound: Bound, candidate: Candidate, limit: float, budget_points: float
) -> float | None:
    """Return the value that a bound limits, in the unit of the bound, None if it is not known."""
    if bound == "p99_ms":
        return candidate.p99_ms
    if bound == "memory_mb":
        return memory_mb(candidate.result)
    return points_lost(candidate.result, limit, budget_points)


def why_unknown(bound: Bound, candidate: Candidate, limit: float) -> str:
    """Return why the value that a bound limits is not known."""
    return why_no_p99(candidate, limit) if bound == "p99_ms" else "not measured"


def points_lost(result: Result, limit: float, budget_points: float) -> float | None:
    """Return the most points of accuracy that a variant may have lost, None if it is not known.

    That is the low end of the interval. Without labels it is 0: then accuracy rules nothing out. A
    variant in float with the baseline's logits up to rounding, which was `kept` although the
    interval is wider than the budget, has lost nothing.
    """
    accuracy = result["accuracy"]
    if accuracy is None or result["variant"] == result["baseline"]:
        return 0.0
    low = accuracy["delta_low"]
    if low is None:
        return None
    # 100 * 0.009 is a little more than a bound of 0.9
    lost = round(max(0.0, -100 * low), 9)
    equal = accuracy["verdict"] == "kept" and lost > budget_points
    return 0.0 if equal and lost > limit else lost


def how_far(miss: Miss) -> float:
    """Return by what fraction of its limit a bound is missed, infinite if it is not known."""
    if miss["by"] is None:
        return math.inf
    return miss["by"] / miss["limit"] if miss["limit"] else miss["by"]


def ruled_out(candidate: Candidate, goal: Goal) -> str | None:
    """Return why a candidate cannot be deployed whatever the bounds are, or None.

    The accuracy budget of the configuration holds unless the goal has a bound of its own.
    """
    result = candidate.result
    if result["status"] != "ok":
        return f"{result['status']}: {result['reason']}"
    if goal["accuracy_points"] is None and (reason := unkept(result)):
        return reason
    return candidate.lacks
