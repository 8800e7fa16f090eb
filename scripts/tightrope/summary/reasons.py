"""Why a variant is recommended or not, in words."""

from collections.abc import Mapping
from typing import Any

from tightrope.records.finalists import MOST
from tightrope.records.race_statistics import NONE_FASTER
from tightrope.summary.races import ratio_between
from tightrope.variants import parse

Entry = dict[str, Any]


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
