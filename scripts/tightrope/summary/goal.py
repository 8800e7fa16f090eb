"""The variant for the configured goal, per model and host, and what each of its bounds cost."""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from tightrope.summary.cost import Prices, price_of
from tightrope.summary.decision_types import Recommendation, Rejected
from tightrope.summary.goal_bounds import given, how_far, misses, ruled_out
from tightrope.summary.goal_candidates import Candidate, at_shapes, under_traffic, unit_of
from tightrope.summary.goal_recommendations import ShapeKey, by_shape, key_of
from tightrope.summary.goal_types import Bound, BoundCost, Goal, GoalDecision, Miss, Nearest
from tightrope.summary.goal_words import bound_words, decisive, pace_words, sentence, worse
from tightrope.summary.recommend import of_models, shapes_of
from tightrope.summary.result_types import Result, Shape
from tightrope.summary.workload_types import Traffic

# what a race of calls decides: a cost is time per inference times a constant
TIMED = ("latency", "cost")


class Context(NamedTuple):
    """What a decision needs besides its candidates.

    `races` are the recommendations by shape that the race made, `budget_points` is the budget by
    which the summary judged accuracy.
    """

    goal: Goal
    unit: str
    budget_points: float
    races: Mapping[ShapeKey, Recommendation]


def decisions(
    goal: Goal | None,
    results: Sequence[Result],
    raced: Sequence[Recommendation],
    traffic: Sequence[Traffic],
    *,
    prices: Prices,
    budget_points: float,
) -> list[GoalDecision]:
    """Return the decision per model and host, empty without a goal.

    Without a shape or traffic there is one per shape, as of recommendations; of `cost` only one, at
    the cheapest shape of each variant. Models that were not measured at the goal's shape, or under
    its traffic, have none. `raced` are the recommendations by latency.
    """
    found: list[GoalDecision] = []
    measured = of_models(results)
    places = dict.fromkeys((one["model"], one["host"]) for one in results if one["latency"])
    for model, host in places if goal else ():
        if goal is None or host is None:
            continue
        own = [one for one in measured[model] if one["host"] in (host, None)]
        price = price_of(host, prices)
        known = [one for one in raced if (one["model"], one["host"]) == (model, host)]
        context = Context(goal, unit_of(goal, price), budget_points, by_shape(known))
        if goal["traffic"]:
            loads = [one for one in traffic if (one["model"], one["host"]) == (model, host)]
            under = list(under_traffic(goal, goal["traffic"], own, loads, price))
            found += [decide(model, host, own, under, None, context)] if loads else []
            continue
        for shapes in shape_groups(goal, own):
            at = at_shapes(goal, own, shapes, price)
            shape = shapes[0] if len(shapes) == 1 else None
            found.append(decide(model, host, own, at, shape, context))
    return found


def shape_groups(goal: Goal, results: Sequence[Result]) -> list[list[Shape]]:
    """Return the shapes of each decision."""
    shapes = shapes_of(results)
    if goal["shape"]:
        return [[shape] for shape in shapes if shape == goal["shape"]]
    return [shapes] if goal["minimize"] == "cost" else [[shape] for shape in shapes]


def decide(
    model: str,
    host: str,
    results: Sequence[Result],
    candidates: Sequence[Candidate],
    shape: Shape | None,
    context: Context,
) -> GoalDecision:
    """Return the decision of one model on one host among the candidates."""
    goal = context.goal
    deployable = [one for one in candidates if ruled_out(one, goal) is None]
    missed = [(one, misses(one, goal, context.budget_points)) for one in deployable]
    chosen = best([one for one, without in missed if not without], context)
    bounds = [bound_cost(bound, limit, missed, chosen, context) for bound, limit in given(goal)]
    near = None if chosen else nearest(missed)
    return {
        "model": model,
        "host": host,
        "shape": chosen.shape if chosen else shape,
        "traffic": goal["traffic"],
        "padding": chosen.padding if chosen else None,
        "variant": chosen.variant if chosen else None,
        "value": chosen.value if chosen else None,
        "unit": context.unit,
        "sentence": sentence(
            goal, shape, context.unit, chosen, bounds, near, pace(chosen, candidates, context)
        ),
        "provisional": is_provisional(candidates, chosen, context),
        "bounds": bounds,
        "nearest": near,
        "rejected": rejections(results, candidates, missed, chosen, context),
    }


def best(candidates: Sequence[Candidate], context: Context) -> Candidate | None:
    """Return the candidate with the lowest value, None without any.

    Of times, the winner of the race at the shape of that candidate, if it is one of them: the race
    measured all in the same rounds, and among equal ones it took the smallest files.
    """
    known = [(one.value, one) for one in candidates if one.value is not None]
    if not known:
        return None
    lowest = min(known, key=lambda pair: pair[0])[1]
    return next((one for one in candidates if is_winner(one, lowest, context)), lowest)


def is_winner(candidate: Candidate, lowest: Candidate, context: Context) -> bool:
    """Return whether a candidate won the race at the shape of the one with the lowest value."""
    if context.goal["minimize"] not in TIMED or lowest.shape is None:
        return False
    race = context.races.get(key_of(lowest.shape))
    return bool(race and (candidate.variant, candidate.shape) == (race["variant"], lowest.shape))


def pace(chosen: Candidate | None, candidates: Sequence[Candidate], context: Context) -> str:
    """Return how fast the choice for memory or energy is, in words; a goal of time says it."""
    if chosen is None or chosen.shape is None or context.goal["minimize"] in TIMED:
        return ""
    race = context.races.get(key_of(chosen.shape))
    return pace_words(chosen, candidates, race["variant"]) if race else ""


def bound_cost(
    bound: Bound,
    limit: float,
    missed: Sequence[tuple[Candidate, list[Miss]]],
    chosen: Candidate | None,
    context: Context,
) -> BoundCost:
    """Return what a bound cost: the best candidate without it against the chosen one."""
    others = [one for one, without in missed if {miss["bound"] for miss in without} <= {bound}]
    free = best(others, context)
    more = None
    if chosen and free and chosen.value is not None and free.value:
        more = max(0.0, chosen.value / free.value - 1)
    return {
        "bound": bound,
        "limit": limit,
        "variant": free.variant if free else None,
        "value": free.value if free else None,
        "more": more,
        "words": bound_words(context.goal, bound, limit, more, free),
    }


def nearest(missed: Iterable[tuple[Candidate, list[Miss]]]) -> Nearest | None:
    """Return the candidate whose most missed bound is missed by the smallest fraction."""
    known = [(value, one, short) for one, short in missed if (value := one.value) is not None]
    if not known:
        return None
    value, one, short = min(known, key=lambda found: (how_far(found[2][0]), found[0]))
    return {"variant": one.variant, "value": value, "misses": short}


def is_provisional(
    candidates: Iterable[Candidate], chosen: Candidate | None, context: Context
) -> bool:
    """Return whether other load may have changed the decision, or a race has no winner."""
    goal = context.goal
    open_ones = [
        one
        for one in candidates
        if one.lacks and one.lacks.startswith("disturbed") and one.result["status"] == "ok"
    ]
    may_meet = [one for one in open_ones if ruled_out(one._replace(lacks=None), goal) is None]
    if may_meet or (chosen and chosen.provisional):
        return True
    if chosen is None or chosen.shape is None or goal["minimize"] not in TIMED:
        return False
    race = context.races.get(key_of(chosen.shape))
    return race is None or race["variant"] is None or race["provisional"]


def rejections(
    results: Iterable[Result],
    candidates: Sequence[Candidate],
    missed: Sequence[tuple[Candidate, list[Miss]]],
    chosen: Candidate | None,
    context: Context,
) -> list[Rejected]:
    """Return each other variant with one reason; those that a bound kept from being chosen first.

    Each group has the lowest value first: those that are better than the chosen one, those that
    are worse, those without a value.
    """
    found: dict[str, tuple[tuple[int, float], str]] = {}
    at_best = chosen.value if chosen and chosen.value is not None else float("inf")
    short_of = {id(one): short for one, short in missed}
    for one in candidates:
        short = short_of.get(id(one), [])
        reason = ruled_out(one, context.goal)
        if reason is None:
            reason = decisive(short) if short else against(one, chosen, context)
        order = (2, 0.0) if one.value is None else (int(one.value >= at_best), one.value)
        if one.variant not in found or order < found[one.variant][0]:
            found[one.variant] = order, reason
    where = "under this traffic" if context.goal["traffic"] else "at this shape"
    for result in results:
        why = (
            f"not measured {where}"
            if result["status"] == "ok"
            else (f"{result['status']}: {result['reason']}")
        )
        found.setdefault(result["variant"], ((3, 0.0), why))
    found.pop(chosen.variant if chosen else "", None)
    ordered = sorted(found.items(), key=lambda item: item[1][0])
    return [{"variant": name, "reason": reason} for name, (_, reason) in ordered]


def against(candidate: Candidate, chosen: Candidate | None, context: Context) -> str:
    """Return why a candidate that meets the goal is not chosen; the race's reason if it won."""
    if chosen is None:
        return "not chosen"
    race = context.races.get(key_of(chosen.shape)) if chosen.shape else None
    if context.goal["minimize"] == "latency" and race and race["variant"] == chosen.variant:
        told = {one["variant"]: one["reason"] for one in race["rejected"]}
        if candidate.variant in told:
            return told[candidate.variant]
    return worse(context.goal, candidate, chosen, context.unit)
