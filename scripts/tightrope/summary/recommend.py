"""Which variant to deploy at each shape: the winner of the race among those with kept accuracy."""

from collections.abc import Iterable, Mapping
from typing import Any

from tightrope.records.finalists import MOST
from tightrope.records.race_statistics import NONE_FASTER
from tightrope.summary.races import DECIDED, RaceKey, race_key, ratio_between, shape_of
from tightrope.variants import parse

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
    `decision.equal_within`, over the whole interval, and have larger files; `open` lists variants
    that the available time did not separate from the winner. `disturbed` lists variants with kept
    accuracy whose latency or race was disturbed by other load: they may be faster, so the choice is
    then `provisional`. It omits a baseline that was disturbed only while running alone, if the
    chosen variant is faster when paired with it.
    """
    rows = rows_at(results, shape)
    reasons = {result["variant"]: disqualified(result, rows) for result in results}
    fit = [result for result in results if reasons[result["variant"]] is None]
    disturbed = [one["variant"] for one in results if may_be_faster(one, rows)]
    winners = {
        device: race
        for device, race in races.items()
        if race["variant"] is not None and reasons[race["variant"]] is None
    }
    behind = beaten_baselines(results, rows, [race["variant"] for race in winners.values()])
    disturbed = [name for name in disturbed if name not in behind]
    undecided = [race for race in races.values() if race["status"] != DECIDED]
    common = {
        "equal": [],
        "open": [],
        "disturbed": disturbed,
        "provisional": bool(disturbed or undecided),
    }
    if not winners:
        words = why_nothing(results, fit, undecided, disturbed)
        reasons |= {one["variant"]: "the race has no winner" for one in fit}
        return {**common, "variant": None, "why": words, "rejected": listed(reasons)}
    # devices do not race each other: compare times measured at different minutes
    best = min(winners, key=lambda device: rows[winners[device]["variant"]]["paired_s"])
    race = winners[best]
    sizes = {result["variant"]: result["size_bytes"] for result in fit}
    for result in fit:
        reasons[result["variant"]] = beaten(result["variant"], rows, race, sizes)
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


def disqualified(result: Entry, rows: Mapping[str, Entry]) -> str | None:
    """Return why a result cannot be deployed at this shape, or None."""
    if result["status"] != "ok":
        return f"{result['status']}: {result['reason']}"
    row = rows.get(result["variant"])
    if row is None:
        return "not measured at this shape"
    if reason := unkept(result):
        return reason
    if row["disturbed"] and not row["provisional"]:
        return f"disturbed: {row['disturbed']}"
    return None


def unkept(result: Entry) -> str | None:
    """Return why the accuracy rules out deployment, None if it is kept or was not evaluated."""
    accuracy = result["accuracy"]
    if accuracy is None or accuracy["verdict"] == "kept":
        return None
    if accuracy["delta"] is None:
        return "accuracy undecided: its baseline has no predictions"
    return f"accuracy {accuracy['verdict']}: {points(accuracy)}"


def beaten(name: str, rows: Mapping[str, Entry], race: Entry, sizes: Mapping[str, int]) -> str:
    """Explain why a variant with kept accuracy was not chosen; `sizes` are in bytes by variant."""
    chosen = race["variant"]
    if parse(name).device != race["device"]:
        seconds = (rows[one]["paired_s"] for one in (name, chosen))
        ours, theirs = (f"{1000 * one:.3g} ms" for one in seconds)
        return f"slower: {ours} per call, {chosen} takes {theirs}"
    if name in race["left_out"]:
        return f"failed in the race: {race['left_out'][name]}"
    measured = ratio_between(race, name, chosen)
    if name in race["equal"]:
        files = "but its files are larger" if sizes[name] > sizes[chosen] else "with files as large"
        return f"equal to {chosen} within {percent(race)}, {files}"
    if measured is not None:
        told = times(measured, f"as fast as {chosen}")
        return f"not told apart: {told}" if name in race["open"] else f"slower: {told}"
    if name in race["raced"]:
        return f"slower than {race['out'].get(name, 'others')} in the race"
    if len(race["raced"]) >= MOST and may_win(rows[name], rows[chosen]):
        return f"not raced: {MOST} variants are surely faster than the baseline by more"
    return f"slower: {speed(rows[name])}"


def may_win(row: Entry, best: Entry) -> bool:
    """Return whether the speed-up interval of `row` reaches that of `best`."""
    ends = (row["speedup"] or {}).get("high"), (best["speedup"] or {}).get("low")
    return None not in ends and ends[0] >= ends[1]


def why(race: Entry, fit: list[Entry], sizes: Mapping[str, int]) -> str:
    """Explain why the race winner was chosen among the variants in `fit`."""
    judged = all(result["accuracy"] is not None for result in fit)
    if len(fit) == 1:
        return "the only variant that keeps the answers" if judged else "the only variant measured"
    if race["equal"]:
        same = ", ".join(race["equal"])
        return f"equal to {same} within {percent(race)}, {tie_break(race, sizes)}"
    if race["variant"] != race["fastest"]:
        return (
            f"by estimate at most {percent(race)} slower than {race['fastest']}, not told apart; "
            f"{tie_break(race, sizes)}"
        )
    if race["open"]:
        return f"the fastest by estimate; {open_words(race)}"
    return f"the fastest of the {len(fit)} variants " + (
        "that keep the answers" if judged else "measured"
    )


def percent(race: Entry) -> str:
    """Format the share within which two variants are equal."""
    return f"{100 * race['within']:.2g} %"


def tie_break(race: Entry, sizes: Mapping[str, int]) -> str:
    """Describe what decided among variants that are equal, or not told apart."""
    others = {*race["equal"], race["fastest"]} - {race["variant"]}
    if all(sizes[race["variant"]] < sizes[name] for name in others):
        return "with the smallest files"
    return "the first by name, with files as large"


def open_words(race: Entry) -> str:
    """Describe the variants that the race did not separate from the chosen variant."""
    names = ", ".join(race["open"])
    if race["stop"] == NONE_FASTER:
        return f"not told apart from {names}, at most {percent(race)} faster"
    return f"time did not suffice to tell it from {names}"


def why_nothing(
    results: list[Entry], fit: list[Entry], undecided: list[Entry], disturbed: list[str]
) -> str:
    """Explain why nothing is recommended."""
    reasons = [race["reason"] for race in undecided if race["reason"]]
    if reasons:
        return f"disturbed: {reasons[0]}"
    if disturbed:
        return "disturbed: other load kept the processors busy while the variants were timed"
    if fit:
        return "the race was not run"
    if any(result["status"] == "ok" for result in results):
        return "no variant keeps the answers"
    return "nothing could be measured"


def speed(row: Entry) -> str:
    """Format the speed-up of a row with its interval, or the time per call without a baseline."""
    speedup = row["speedup"]
    if speedup is None or speedup["ratio"] is None:
        return f"{1000 * row['paired_s']:.3g} ms per call"
    return times(speedup, "the baseline")


def times(speedup: Entry, other: str) -> str:
    """Format a ratio of speeds with its interval."""
    low, high = speedup["low"], speedup["high"]
    return f"{speedup['ratio']:.2f} times {other} ({low:.2f} to {high:.2f})"


def points(accuracy: Entry) -> str:
    """Format an accuracy change in percentage points with its interval."""
    low, high = 100 * accuracy["delta_low"], 100 * accuracy["delta_high"]
    text = f"{100 * accuracy['delta']:+.1f} points ({low:+.1f} to {high:+.1f})"
    return text.replace("-", "\N{MINUS SIGN}")
