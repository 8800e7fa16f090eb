"""The variant for a goal at each shape, with its reasons."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec
from msgspec.structs import replace

from tightrope.decide.bounds import (
    Bound,
    Candidate,
    Goal,
    Miss,
    Prices,
    Scenario,
    at_shapes,
    given,
    how_far,
    misses,
    price_of,
    ruled_out,
    under_traffic,
    unit_of,
)
from tightrope.decide.recommend import Recommendation, Rejected, measured_places, shapes_of
from tightrope.decide.result import Entry, Reason, Result, Shape, StudyEntry, same

# what a race of calls decides: a cost is time per inference times a constant
TIMED = ("latency", "cost")


class BoundCost(Entry):
    """What a bound costs."""

    bound: Bound
    limit: float
    """Which bound, and at most how much, in its unit."""
    variant: str | None
    value: float | None
    """The best variant without this bound, and its value."""
    more: float | None
    """The chosen value over that value, less 1; None without a chosen variant."""


class Nearest(Entry):
    """The variant that comes nearest to a goal that nothing meets."""

    variant: str
    value: float
    """Its name, and what the goal minimizes."""
    misses: list[Miss]
    """The bounds that it misses, the worst first."""


class Pace(Entry):
    """How fast the variant for a goal is."""

    variant: str
    ratio: float
    """The winner of the race at its shape, and the latency of the variant over its."""


class GoalDecision(Entry):
    """The variant for the goal, [how it is decided](goal.md)."""

    model: str
    host: str
    """For which model, on which host."""
    shape: Shape | None
    """At which the value was measured; None under traffic, and if no variant meets a goal of `cost`
    without a shape."""
    traffic: Scenario | None
    padding: str | None
    """With which the value was measured; None without traffic."""
    variant: str | None
    """None if none meets the goal."""
    value: float | None
    unit: str
    """What the goal minimizes."""
    pace: Pace | None
    """None for a goal of time, which says it, and where a time is not known."""
    provisional: bool
    """Whether other load may have changed it."""
    bounds: list[BoundCost]
    """One per bound of the goal."""
    nearest: Nearest | None
    """None unless no variant meets the goal."""
    rejected: list[Rejected]
    """All other variants; those that would be better than the chosen one come first."""


def decisions(
    goal: Goal | None,
    results: Sequence[Result],
    raced: Sequence[Recommendation],
    traffic: Sequence[StudyEntry],
    prices: Prices,
    budget_points: float,
) -> list[GoalDecision]:
    """Return the decision per model and host, empty without a goal.

    Without a shape or traffic there is one per shape, as of recommendations; of `cost` only one, at
    the cheapest shape of each variant. Models that were not measured at the goal's shape, or under
    its traffic, have none. `raced` are the recommendations by latency, `budget_points` is the
    budget by which the summary judged accuracy.
    """
    if goal is None:
        return []
    found: list[GoalDecision] = []
    for model, host, own in measured_places(results):
        price = price_of(host, prices)
        known = [one for one in raced if (one.model, one.host) == (model, host)]
        about = goal, unit_of(goal, price), budget_points, {one.shape: one for one in known}
        if goal.traffic:
            loads = [one for one in traffic if (one.model, one.host) == (model, host)]
            under = [*under_traffic(goal, own, loads, price)]
            found += [Decision(*about, under).entry(model, host, own, None)] if loads else []
            continue
        shapes_here = [one for one in shapes_of(own) if goal.shape in (None, one)]
        together = goal.minimize == "cost" and not goal.shape
        for shapes in [shapes_here] if together else [[one] for one in shapes_here]:
            decision = Decision(*about, at_shapes(goal, own, shapes, price))
            shape = shapes[0] if len(shapes) == 1 else None
            found.append(decision.entry(model, host, own, shape))
    return found


class Decision:
    """The decision of one model on one host among the candidates.

    `unit` is that of their values, `races` are the recommendations by shape that the race made,
    `budget_points` is the budget by which the summary judged accuracy.
    """

    def __init__(
        self,
        goal: Goal,
        unit: str,
        budget_points: float,
        races: Mapping[Shape, Recommendation],
        candidates: Sequence[Candidate],
    ) -> None:
        self.goal, self.unit, self.races, self.candidates = goal, unit, races, candidates
        self.judged = [
            (one, ruled_out(one, goal), misses(one, goal, budget_points)) for one in candidates
        ]
        self.missed = [(one, short) for one, reason, short in self.judged if reason is None]
        self.chosen = self.best([one for one, short in self.missed if not short])

    def entry(
        self, model: str, host: str, results: Iterable[Result], shape: Shape | None
    ) -> GoalDecision:
        """Return the decision; `results` are all of the model on the host."""
        told: dict[str, Any] = {"shape": shape, "padding": None, "variant": None, "value": None}
        return GoalDecision(
            model=model,
            host=host,
            **(same(self.chosen, *told) if self.chosen else told),
            traffic=self.goal.traffic,
            unit=self.unit,
            pace=self.pace(),
            provisional=self.is_provisional(),
            bounds=[self.bound_cost(*one) for one in given(self.goal)],
            nearest=None if self.chosen else self.nearest(),
            rejected=self.rejections(results),
        )

    def race_at(self, one: Candidate | None) -> Recommendation | None:
        """Return the recommendation of the race at the shape of a candidate, None without one."""
        return self.races.get(one.shape) if one and one.shape else None

    def best(self, candidates: Iterable[Candidate]) -> Candidate | None:
        """Return the candidate with the lowest value, None without any.

        Of times, the winner of the race at the shape of that candidate, if it is one of them: the
        race measured all in the same rounds, and among equal ones it took the smallest files.
        """
        known = [one for one in candidates if one.value is not None]
        if not known:
            return None
        lowest = min(known, key=lambda one: one.value or 0.0)
        race = self.race_at(lowest) if self.goal.minimize in TIMED else None
        won = (race.variant, lowest.shape) if race else None
        return next((one for one in known if (one.variant, one.shape) == won), lowest)

    def pace(self) -> Pace | None:
        """Return the latency of the choice over that of the winner of the race at its shape.

        None for a goal of time, which says it, and where one of the two times is not known.
        """
        chosen, race = self.chosen, self.race_at(self.chosen)
        if chosen is None or race is None or self.goal.minimize in TIMED:
            return None
        if chosen.variant == race.variant:
            return Pace(chosen.variant, 1.0)
        winner = next((one.row for one in self.candidates if one.variant == race.variant), None)
        own, best = (row.paired_s if row else None for row in (chosen.row, winner))
        if race.variant is None or own is None or best is None:
            return None
        return Pace(race.variant, own / best)

    def bound_cost(self, bound: Bound, limit: float) -> BoundCost:
        """Return what a bound cost: the best candidate without it against the chosen one."""
        others = (one for one, short in self.missed if {miss.bound for miss in short} <= {bound})
        chosen, free, more = self.chosen, self.best(others), None
        if chosen and free and chosen.value is not None and free.value:
            more = max(0.0, chosen.value / free.value - 1)
        name, value = (free.variant, free.value) if free else (None, None)
        return BoundCost(bound, limit, name, value, more)

    def nearest(self) -> Nearest | None:
        """Return the candidate whose most missed bound is missed by the smallest fraction."""
        known = [
            Nearest(one.variant, one.value, short)
            for one, short in self.missed
            if one.value is not None
        ]
        return min(known, key=lambda one: (how_far(one.misses[0]), one.value), default=None)

    def is_provisional(self) -> bool:
        """Return whether other load may have changed the decision, or a race has no winner."""
        chosen, goal = self.chosen, self.goal
        disturbed = [one for one in self.candidates if one.lacks and one.lacks.code == "disturbed"]
        may_meet = any(ruled_out(one._replace(lacks=None), goal) is None for one in disturbed)
        if may_meet or (chosen and chosen.provisional):
            return True
        if chosen is None or chosen.shape is None or goal.minimize not in TIMED:
            return False
        race = self.race_at(chosen)
        return race is None or race.variant is None or race.provisional

    def rejections(self, results: Iterable[Result]) -> list[Rejected]:
        """Return each other variant with one reason; those that a bound kept from it come first.

        Each group has the lowest value first: those that are better than the chosen one, those that
        are worse, those without a value.
        """
        chosen, found = self.chosen, dict[str, tuple[tuple[int, float], Reason]]()
        at_best = chosen.value if chosen and chosen.value is not None else float("inf")
        for candidate, reason, short in self.judged:
            value, name = candidate.value, candidate.variant
            if reason is None:
                reason = missed(short[0]) if short else self.against(candidate)
            order = (2, 0.0) if value is None else (int(value >= at_best), value)
            if name not in found or order < found[name][0]:
                found[name] = order, reason
        unmeasured = Reason.of("unmeasured_traffic" if self.goal.traffic else "unmeasured")
        for one in results:
            failed = None if one.status == "ok" else Reason.of(one.status, reason=one.reason)
            found.setdefault(one.variant, ((3, 0.0), failed or unmeasured))
        found.pop(chosen.variant if chosen else "", None)
        ordered = sorted(found.items(), key=lambda item: item[1][0])
        return [Rejected(name, reason) for name, (_, reason) in ordered]

    def against(self, candidate: Candidate) -> Reason:
        """Return why a candidate that meets the goal is not chosen; the race's reason if it won."""
        chosen, minimize = self.chosen, self.goal.minimize
        if chosen is None:
            return Reason.of("not_chosen")
        race = self.race_at(chosen)
        if minimize == "latency" and race and race.variant == chosen.variant:
            told = {one.variant: one.reason for one in race.rejected}
            if candidate.variant in told:
                return told[candidate.variant]
        if candidate.value is None or chosen.value is None:
            return Reason.of("unknown", of=minimize)
        if candidate.value <= chosen.value:
            return Reason.of("not_the_winner", other=chosen.variant)
        told_of = {"of": minimize, "unit": self.unit, "other": chosen.variant}
        return Reason.of("more", **told_of, value=candidate.value, other_value=chosen.value)


def missed(miss: Miss) -> Reason:
    """Return that a variant misses a bound, or that its value is not known."""
    code = "over" if miss.why is None else "not_known"
    return Reason.of(code, **msgspec.to_builtins(miss))


def for_goal(
    recommendations: Iterable[Recommendation], decided: Iterable[GoalDecision]
) -> list[Recommendation]:
    """Return the recommendations, those at the shape of a decision with its variant and reasons.

    What the race said of variants that are as fast as its winner holds only for that winner.
    """
    by_place = {(one.model, one.host, one.shape): one for one in decided if one.shape is not None}
    found: list[Recommendation] = []
    for one in recommendations:
        if decision := by_place.get((one.model, one.host, one.shape)):
            if one.variant != decision.variant:
                one = replace(one, equal=[], open=[], disturbed=[], undecided=[])
            told = same(decision, "variant", "provisional", "rejected")
            one = replace(one, why=Reason.of("goal"), **told)
        found.append(one)
    return found
