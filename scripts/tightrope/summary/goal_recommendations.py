"""Recommendations by shape, and what a goal changes in them."""

from collections.abc import Iterable, Mapping
from typing import Any

from tightrope.summary.decision_types import Recommendation
from tightrope.summary.goal_types import GoalDecision

ShapeKey = tuple[tuple[str, int], ...]


def by_shape(recommendations: Iterable[Recommendation]) -> dict[ShapeKey, Recommendation]:
    """Return the recommendations by shape."""
    return {key_of(one["shape"]): one for one in recommendations}


def key_of(shape: Mapping[str, Any]) -> ShapeKey:
    """Return a shape as the key of a dict."""
    return tuple(sorted(shape.items()))


def for_goal(
    recommendations: Iterable[Recommendation], decided: Iterable[GoalDecision]
) -> list[Recommendation]:
    """Return the recommendations, those at the shape of a decision with its variant and reasons."""
    by_place = {
        (one["model"], one["host"], key_of(one["shape"])): one
        for one in decided
        if one["shape"] is not None
    }
    found: list[Recommendation] = []
    for one in recommendations:
        decision = by_place.get((one["model"], one["host"], key_of(one["shape"])))
        found.append(one if decision is None else of_decision(one, decision))
    return found


def of_decision(recommendation: Recommendation, decision: GoalDecision) -> Recommendation:
    """Return a recommendation with the choice of a decision at its shape.

    What the race said of variants that are as fast as its winner holds only for that winner.
    """
    same = recommendation["variant"] == decision["variant"]
    kept: Recommendation = {
        **recommendation,
        "variant": decision["variant"],
        "why": decision["sentence"],
        "provisional": decision["provisional"],
        "rejected": decision["rejected"],
    }
    return kept if same else {**kept, "equal": [], "open": [], "disturbed": [], "undecided": []}
