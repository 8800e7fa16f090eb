"""Which variant to deploy at each shape: the winner of the race among those with kept accuracy."""

from collections.abc import Iterable, Mapping
from typing import Any

from tightrope.summary.races import DECIDED, RaceKey, race_key, shape_of
from tightrope.summary.reasons import beaten, disqualified, unkept, why, why_nothing

Entry = dict[str, Any]
Races = Mapping[RaceKey, Entry]


def recommendations(results: list[Entry], races: Races) -> list[Entry]:
    """Return a recommendation per model, host and shape; `variant` is None if none qualifies.

    Times of different hosts are never compared.
    """
    found = []
    places = dict.fromkeys((one["model"], one["host"]) for one in results if one["latency"])
    for model, host in places:
        own = [one for one in results if one["model"] == model and one["host"] in (host, None)]
        for shape in shapes_of(own):
            here = {
                device: races[key]
                for device in dict.fromkeys(one["device"] for one in own)
                if (key := race_key(model, host, device, shape)) in races
            }
            found.append({"model": model, "host": host, "shape": shape, **choose(own, shape, here)})
    return found


def shapes_of(results: list[Entry]) -> list[Entry]:
    """Return the distinct shapes at which the results were measured."""
    shapes = [shape_of(row) for result in results for row in result["latency"]]
    return list({tuple(shape.items()): shape for shape in shapes}.values())


def rows_at(results: Iterable[Entry], shape: Entry) -> dict[str, Entry]:
    """Return the latency rows of a shape by variant."""
    return {
        result["variant"]: row
        for result in results
        for row in result["latency"]
        if shape_of(row) == shape
    }


def choose(results: list[Entry], shape: Entry, races: Mapping[str, Entry]) -> Entry:
    """Return `variant`, `why`, `rejected` and the certainty of the choice, for one model.

    `races` are by device. `equal` lists variants that differ by no more than
    `decision.equal_within`, over the whole interval, and whose files are no smaller; `open` lists
    other variants that the race did not separate from the winner. `disturbed` lists variants with
    kept accuracy whose latency or race was disturbed by other load: they may be faster, so the
    choice is then `provisional`. It omits a baseline that was disturbed only while running alone,
    if the chosen variant is faster when paired with it.
    """
    rows = rows_at(results, shape)
    reasons = {result["variant"]: disqualified(result, rows) for result in results}
    fit = [result for result in results if reasons[result["variant"]] is None]
    decided = [race for race in races.values() if race["variant"] is not None]
    winners = [race for race in decided if reasons[race["variant"]] is None]
    behind = beaten_baselines(results, rows, [race["variant"] for race in winners])
    disturbed = [one["variant"] for one in results if may_be_faster(one, rows)]
    disturbed = [name for name in disturbed if name not in behind]
    undecided = [race for race in races.values() if race["status"] != DECIDED]
    common = {"disturbed": disturbed, "provisional": bool(disturbed or undecided)}
    if not winners:
        words = why_nothing(results, fit, undecided, disturbed)
        reasons |= {one["variant"]: "the race has no winner" for one in fit}
        nothing = {"variant": None, "why": words, "equal": [], "open": []}
        return {**common, **nothing, "rejected": listed(reasons)}
    # devices do not race each other: compare times measured at different minutes
    race = min(winners, key=lambda race: rows[race["variant"]]["paired_s"])
    sizes = {result["variant"]: result["size_bytes"] for result in fit}
    reasons |= {name: beaten(name, rows, race, sizes) for name in sizes}
    del reasons[race["variant"]]
    return {
        **common,
        "equal": race["equal"],
        "open": race["open"],
        "provisional": common["provisional"] or race["provisional"],
        "variant": race["variant"],
        "why": why(race, fit, sizes),
        "rejected": listed(reasons),
    }


def may_be_faster(result: Entry, rows: Mapping[str, Entry]) -> bool:
    """Return whether accuracy is kept and the latency at this shape was disturbed."""
    row = rows.get(result["variant"])
    return bool(result["status"] == "ok" and row and row["disturbed"] and unkept(result) is None)


def beaten_baselines(
    results: list[Entry], rows: Mapping[str, Entry], winners: list[str]
) -> set[str]:
    """Return the baselines that a winner is significantly faster than, measured in pairs."""
    return {
        result["baseline"]
        for result in results
        if result["variant"] in winners
        and (rows[result["variant"]]["speedup"] or {}).get("verdict") == "faster"
    }


def listed(reasons: Mapping[str, str]) -> list[Entry]:
    """Return the rejected variants with their reasons."""
    return [{"variant": name, "reason": reason} for name, reason in reasons.items()]
