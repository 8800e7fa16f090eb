"""The variant for a goal at each shape, with its reasons in words."""

from collections.abc import Iterable, Mapping, Sequence

from msgspec.structs import replace

from tightrope.decide.bounds import (
    BOUNDS,
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
from tightrope.decide.phrases import number
from tightrope.decide.recommend import Recommendation, Rejected, measured_places, shapes_of
from tightrope.decide.result import Entry, Result, Shape, StudyEntry, same

# a bound that costs less than this is said to cost nothing
NOTHING = 0.0005
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
    words: str
    """The same in words."""


class Nearest(Entry):
    """The variant that comes nearest to a goal that nothing meets."""

    variant: str
    value: float
    """Its name, and what the goal minimizes."""
    misses: list[Miss]
    """The bounds that it misses, the worst first."""


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
    sentence: str
    """The decision in words."""
    provisional: bool
    """Whether other load may have changed it."""
    bounds: list[BoundCost]
    """One per bound of the goal."""
    nearest: Nearest | None
    """None unless no variant meets the goal."""
    rejected: list[Rejected]
    """All other variants; those that would be better than the chosen one come first."""


def limit_words(bound: Bound, limit: float) -> str:
    """Format a bound: `p99 at most 5 ms`."""
    name, unit = BOUNDS[bound]
    return f"{name} at most {number(limit)} {unit}"


def goal_words(goal: Goal, shape: Shape | None) -> str:
    """Format a goal with its bounds: `least latency at batch 1, sequence 64 with p99 …`."""
    sizes = shape.sizes.items() if shape else ()
    where = f" at {', '.join(f'{name} {size}' for name, size in sizes)}" if sizes else ""
    if goal.traffic:
        where = f" under {goal.traffic.replace('_', ' ')} traffic"
    bounds = " and ".join(limit_words(*one) for one in given(goal))
    return f"least {goal.minimize}{where}" + (f" with {bounds}" if bounds else "")


def miss_words(miss: Miss) -> str:
    """Return how far a bound is missed: `p99 7.2 ms, 2.2 ms over the bound of 5 ms`."""
    name, unit = BOUNDS[miss.bound]
    if miss.value is None or miss.by is None:
        return f"{name} not known: {miss.why}"
    if miss.bound == "accuracy_points":
        name = "accuracy loss may be"
    value, over, limit = (number(one) for one in (miss.value, miss.by, miss.limit))
    return f"{name} {value} {unit}, {over} {unit} over the bound of {limit} {unit}"


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
        chosen, bounds = self.chosen, [self.bound_cost(*one) for one in given(self.goal)]
        near = None if chosen else self.nearest()
        return GoalDecision(
            model=model,
            host=host,
            shape=chosen.shape if chosen else shape,
            traffic=self.goal.traffic,
            padding=chosen.padding if chosen else None,
            variant=chosen.variant if chosen else None,
            value=chosen.value if chosen else None,
            unit=self.unit,
            sentence=self.sentence(shape, bounds, near),
            provisional=self.is_provisional(),
            bounds=bounds,
            nearest=near,
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

    def sentence(
        self, shape: Shape | None, bounds: Iterable[BoundCost], nearest: Nearest | None
    ) -> str:
        """Return the decision in one sentence, with its pace and with what each bound cost."""
        chosen = self.chosen
        words = f"For the {goal_words(self.goal, chosen.shape if chosen else shape)}"
        if chosen is not None and chosen.value is not None:
            padding = f", padding {chosen.padding}" if chosen.padding else ""
            words += f": {chosen.variant}, {number(chosen.value)} {self.unit}{self.pace()}{padding}"
            return "; ".join([words, *(one.words for one in bounds)])
        if nearest is None:
            return f"{words}: no variant qualifies"
        known = all(one.value is not None for one in nearest.misses)
        meets = "meets it" if known else "is known to meet it"
        missed = " and ".join(map(miss_words, nearest.misses))
        return f"{words}: no variant {meets}; the nearest is {nearest.variant}: {missed}"

    def pace(self) -> str:
        """Return how much slower a choice is than the winner of the race at its shape, in words.

        Empty for a goal of time, which says it, and where one of the two times is not known.
        """
        chosen, race = self.chosen, self.race_at(self.chosen)
        if chosen is None or race is None or self.goal.minimize in TIMED:
            return ""
        if chosen.variant == race.variant:
            return ", the fastest"
        winner = next((one.row for one in self.candidates if one.variant == race.variant), None)
        own, best = (row.paired_s if row else None for row in (chosen.row, winner))
        if own is None or best is None:
            return ""
        return f", with {number(own / best)} times the latency of {race.variant}, the fastest"

    def bound_cost(self, bound: Bound, limit: float) -> BoundCost:
        """Return what a bound cost: the best candidate without it against the chosen one."""
        chosen, words = self.chosen, limit_words(bound, limit)
        others = (one for one, short in self.missed if {miss.bound for miss in short} <= {bound})
        free, more = self.best(others), None
        if chosen and free and chosen.value is not None and free.value:
            more = max(0.0, chosen.value / free.value - 1)
        if more is None or free is None:
            words += ": what it costs is not known"
        elif more < NOTHING:
            words += " costs nothing"
        else:
            words += f" costs {number(100 * more)} % more {self.goal.minimize} than {free.variant}"
        name, value = (free.variant, free.value) if free else (None, None)
        return BoundCost(bound, limit, name, value, more, words)

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
        disturbed = [one for one in self.candidates if (one.lacks or "").startswith("disturbed")]
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
        chosen, found = self.chosen, dict[str, tuple[tuple[int, float], str]]()
        at_best = chosen.value if chosen and chosen.value is not None else float("inf")
        for one, reason, short in self.judged:
            if reason is None:
                reason = miss_words(short[0]) if short else self.against(one)
            order = (2, 0.0) if one.value is None else (int(one.value >= at_best), one.value)
            if one.variant not in found or order < found[one.variant][0]:
                found[one.variant] = order, reason
        where = "under this traffic" if self.goal.traffic else "at this shape"
        for result in results:
            failed = f"{result.status}: {result.reason}"
            why = f"not measured {where}" if result.status == "ok" else failed
            found.setdefault(result.variant, ((3, 0.0), why))
        found.pop(chosen.variant if chosen else "", None)
        ordered = sorted(found.items(), key=lambda item: item[1][0])
        return [Rejected(name, reason) for name, (_, reason) in ordered]

    def against(self, candidate: Candidate) -> str:
        """Return why a candidate that meets the goal is not chosen; the race's reason if it won."""
        chosen, minimize = self.chosen, self.goal.minimize
        if chosen is None:
            return "not chosen"
        race = self.race_at(chosen)
        if minimize == "latency" and race and race.variant == chosen.variant:
            told = {one.variant: one.reason for one in race.rejected}
            if candidate.variant in told:
                return told[candidate.variant]
        if candidate.value is None or chosen.value is None:
            return f"its {minimize} was not measured"
        if candidate.value <= chosen.value:
            return f"not slower by estimate, but not the winner of the race: {chosen.variant} is"
        own, best = number(candidate.value), number(chosen.value)
        return f"more {minimize}: {own} {self.unit}, {chosen.variant} has {best}"


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
            one = replace(one, why=decision.sentence, **told)
        found.append(one)
    return found
