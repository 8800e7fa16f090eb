"""Which variant to deploy at each shape: the winner of the race among those with kept accuracy."""

import math
from collections.abc import Iterable, Mapping, Sequence

from tightrope.summary.decision_types import Choice, Race, Recommendation, Rejected
from tightrope.summary.races import DECIDED, RaceKey, race_key
from tightrope.summary.reasons import beaten, disqualified, unkept, why, why_nothing
from tightrope.summary.result_types import LatencyRow, Result, Shape
from tightrope.summary.results import shape_of

Races = Mapping[RaceKey, Race]


def recommendations(results: Sequence[Result], races: Races) -> list[Recommendation]:
    """Return a recommendation per model, host and shape; `variant` is None if none qualifies.

    Times of different hosts are never compared.
    """
    found: list[Recommendation] = []
    known = of_models(results)
    places = dict.fromkeys((one["model"], one["host"]) for one in results if one["latency"])
    for model, host in places:
        if host is None:
            continue
        own = [one for one in known[model] if one["host"] in (host, None)]
        for shape in shapes_of(own):
            here = {
                device: races[key]
                for device in dict.fromkeys(one["device"] for one in own)
                if (key := race_key(model, host, device, shape)) in races
            }
            found.append({"model": model, "host": host, "shape": shape, **choose(own, shape, here)})
    return found


def of_models(results: Iterable[Result]) -> dict[str, list[Result]]:
    """Return the results of each model, in their order."""
    found: dict[str, list[Result]] = {}
    for result in results:
        found.setdefault(result["model"], []).append(result)
    return found


def shapes_of(results: Iterable[Result]) -> list[Shape]:
    """Return the distinct shapes at which the results were measured."""
    shapes = [shape_of(row) for result in results for row in result["latency"]]
    return list({tuple(shape.items()): shape for shape in shapes}.values())


def rows_at(results: Iterable[Result], shape: Shape) -> dict[str, LatencyRow]:
    """Return the latency rows of a shape by variant."""
    return {
        result["variant"]: row
        for result in results
        for row in result["latency"]
        if shape_of(row) == shape
    }


def choose(results: Sequence[Result], shape: Shape, races: Mapping[str, Race]) -> Choice:
    """Return `variant`, `why`, `rejected` and the certainty of the choice, for one model.

    `races` are by device. `equal` lists variants that differ by no more than
    `decision.equal_within`, over the whole interval, and whose files are no smaller; `open` lists
    others that the race did not separate from the winner; `undecided` those for whose accuracy the
    evaluation split is too small. `disturbed` lists variants with kept accuracy that other load
    disturbed, so that the choice is `provisional`, but no baseline that was beaten when paired.
    """
    rows = rows_at(results, shape)
    reasons = {result["variant"]: disqualified(result, rows) for result in results}
    fit = [result for result in results if reasons[result["variant"]] is None]
    decided = {race["variant"]: race for race in races.values() if race["variant"] is not None}
    winners = {name: race for name, race in decided.items() if reasons[name] is None}
    disturbed = disturbed_variants(results, rows, list(winners))
    undecided = [race for race in races.values() if race["status"] != DECIDED]
    if not winners:
        reasons |= {one["variant"]: "the race has no winner" for one in fit}
        words = why_nothing(results, fit, undecided, disturbed)
        maybe = faster_but_undecided(results, rows, None)
        provisional = bool(disturbed or undecided)
        return no_choice(words, disturbed, maybe, listed(reasons), provisional=provisional)
    # devices do not race each other: compare times measured at different minutes
    chosen = min(winners, key=lambda name: rows[name]["paired_s"] or math.inf)
    race = winners[chosen]
    sizes = {result["variant"]: result["size_bytes"] or 0 for result in fit}
    reasons |= {name: beaten(name, chosen, rows, race) for name in sizes}
    del reasons[chosen]
    return {
        "variant": chosen,
        "why": why(chosen, race, fit, sizes),
        "equal": race["equal"],
        "open": race["open"],
        "disturbed": disturbed,
        "provisional": bool(disturbed or undecided) or race["provisional"],
        "undecided": faster_but_undecided(results, rows, rows[chosen]["paired_s"]),
        "rejected": listed(reasons),
    }


def no_choice(
    reason: str,
    disturbed: list[str],
    undecided: list[str],
    rejected: list[Rejected],
    *,
    provisional: bool,
) -> Choice:
    """Return the choice of no variant."""
    return {
        "variant": None,
        "why": reason,
        "equal": [],
        "open": [],
        "disturbed": disturbed,
        "provisional": provisional,
        "undecided": undecided,
        "rejected": rejected,
    }


def faster_but_undecided(
    results: Iterable[Result], rows: Mapping[str, LatencyRow], seconds: float | None
) -> list[str]:
    """Return the variants that are faster than `seconds` per call and may keep the accuracy.

    More evaluation examples could show it. The fastest is first; all are taken without `seconds`.
    """
    candidates = {
        result["variant"]: own
        for result in results
        if (accuracy := result["accuracy"])
        and accuracy["verdict"] == "undecided"
        and accuracy["samples_needed"] is not None
        and (own := rows[result["variant"]]["paired_s"] if result["variant"] in rows else None)
        and (seconds is None or own < seconds)
    }
    return sorted(candidates, key=lambda name: candidates[name])


def disturbed_variants(
    results: Sequence[Result], rows: Mapping[str, LatencyRow], winners: Sequence[str]
) -> list[str]:
    """Return the disturbed variants that may be faster, without baselines that a winner beat."""
    behind = beaten_baselines(results, rows, winners)
    found = [one["variant"] for one in results if may_be_faster(one, rows)]
    return [name for name in found if name not in behind]


def may_be_faster(result: Result, rows: Mapping[str, LatencyRow]) -> bool:
    """Return whether accuracy is kept and the latency at this shape was disturbed."""
    row = rows.get(result["variant"])
    return bool(result["status"] == "ok" and row and row["disturbed"] and unkept(result) is None)


def beaten_baselines(
    results: Iterable[Result], rows: Mapping[str, LatencyRow], winners: Sequence[str]
) -> set[str | None]:
    """Return the baselines that a winner is significantly faster than, measured in pairs."""
    return {
        result["baseline"]
        for result in results
        if result["variant"] in winners
        and (speedup := rows[result["variant"]]["speedup"])
        and speedup["verdict"] == "faster"
    }


def listed(reasons: Mapping[str, str | None]) -> list[Rejected]:
    """Return the rejected variants with their reasons."""
    return [{"variant": name, "reason": reason} for name, reason in reasons.items() if reason]
