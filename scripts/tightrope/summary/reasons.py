"""Why a variant is recommended or not, in words."""

from collections.abc import Mapping, Sequence

from tightrope.records.finalists import MOST
from tightrope.records.race_statistics import NONE_FASTER
from tightrope.statistics import Interval
from tightrope.summary.accuracy import change_of
from tightrope.summary.decision_types import Race
from tightrope.summary.races import ratio_between
from tightrope.summary.ratios import interval_of
from tightrope.summary.result_types import LatencyRow, Result
from tightrope.variants import parse


def disqualified(result: Result, rows: Mapping[str, LatencyRow]) -> str | None:
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


def unkept(result: Result) -> str | None:
    """Return why the accuracy rules out deployment, None if it is kept or was not evaluated."""
    accuracy = result["accuracy"]
    if accuracy is None or accuracy["verdict"] == "kept":
        return None
    change = change_of(accuracy)
    if change is None:
        return "accuracy undecided: its baseline has no predictions"
    needed = accuracy["samples_needed"]
    remedy = f"; about {needed:,} examples could tell" if needed else ""
    return f"accuracy {accuracy['verdict']}: {points(change)}{remedy}"


def beaten(name: str, chosen: str, rows: Mapping[str, LatencyRow], race: Race) -> str:
    """Explain why a variant with kept accuracy lost to `chosen`, the winner of the race."""
    if parse(name).device != race["device"]:
        ours, theirs = (milliseconds(rows[one]) for one in (name, chosen))
        return f"slower: {ours} per call, {chosen} takes {theirs}"
    if name in race["left_out"]:
        return f"failed in the race: {race['left_out'][name]}"
    measured = interval_of(ratio_between(race, name, chosen))
    if name in race["equal"]:
        return f"equally fast (within {percent(race)}); not smaller"
    if measured is not None:
        told = times(measured, f"as fast as {chosen}")
        return f"not told apart: {told}" if name in race["open"] else f"slower: {told}"
    if name in race["raced"]:
        return f"slower than {race['out'].get(name, 'others')} in the race"
    if len(race["raced"]) >= MOST and may_win(rows[name], rows[chosen]):
        return f"not raced: {MOST} variants are surely faster than the baseline by more"
    return f"slower: {speed(rows[name])}"


def may_win(row: LatencyRow, best: LatencyRow) -> bool:
    """Return whether the speed-up interval of `row` reaches that of `best`."""
    own, highest = interval_of(row["speedup"]), interval_of(best["speedup"])
    return own is not None and highest is not None and own.high >= highest.low


def why(chosen: str, race: Race, fit: Sequence[Result], sizes: Mapping[str, int]) -> str:
    """Explain why `chosen`, the race winner, was chosen among the variants in `fit`."""
    judged = all(result["accuracy"] is not None for result in fit)
    if len(fit) == 1:
        return "the only variant that keeps the accuracy" if judged else "the only variant measured"
    if race["equal"]:
        same = ", ".join(race["equal"])
        return f"as fast as {same} (within {percent(race)}); {tie_break(chosen, race, sizes)}"
    if chosen != race["fastest"]:
        return (
            f"by estimate at most {percent(race)} slower than {race['fastest']}, not told apart; "
            f"{tie_break(chosen, race, sizes)}"
        )
    if race["open"]:
        return f"the fastest by estimate; {open_words(race)}"
    return f"the fastest of the {len(fit)} variants " + (
        "that keep the accuracy" if judged else "measured"
    )


def percent(race: Race) -> str:
    """Format the share within which two variants are equal."""
    return f"{100 * race['within']:.2g} %"


def tie_break(chosen: str, race: Race, sizes: Mapping[str, int]) -> str:
    """Describe what decided among variants that are equal, or not told apart."""
    others = {*race["equal"], race["fastest"]} - {chosen, None}
    if all(sizes[chosen] < sizes[name] for name in others if name):
        return "the smallest files"
    return "files of equal size, the first by name"


def open_words(race: Race) -> str:
    """Describe the variants that the race did not separate from the chosen variant."""
    names = ", ".join(race["open"])
    if race["stop"] == NONE_FASTER:
        return f"not told apart from {names}, at most {percent(race)} faster"
    return f"time did not suffice to tell it from {names}"


def why_nothing(
    results: Sequence[Result],
    fit: Sequence[Result],
    undecided: Sequence[Race],
    disturbed: Sequence[str],
) -> str:
    """Explain why nothing is recommended."""
    reasons = [race["reason"] for race in undecided if race["reason"]]
    if reasons:
        return f"disturbed: {reasons[0]}"
    if disturbed:
        on_gpu = any(parse(name).device == "cuda" for name in disturbed)
        gpu = ", or the GPU was throttled or shared," if on_gpu else ""
        return f"disturbed: other load kept the processors busy{gpu} while the variants were timed"
    if fit:
        return "the race was not run"
    if any(result["status"] == "ok" for result in results):
        return "no variant keeps the accuracy"
    return "nothing could be measured"


def speed(row: LatencyRow) -> str:
    """Format the speed-up of a row with its interval, or the time per call without a baseline."""
    speedup = interval_of(row["speedup"])
    return times(speedup, "the baseline") if speedup else f"{milliseconds(row)} per call"


def milliseconds(row: LatencyRow) -> str:
    """Format the time per call by which variants are compared."""
    seconds = row["paired_s"]
    return "an unknown time" if seconds is None else f"{1000 * seconds:.3g} ms"


def times(speedup: Interval, other: str) -> str:
    """Format a ratio of speeds with its interval."""
    return f"{speedup.value:.2f} times {other} ({speedup.low:.2f} to {speedup.high:.2f})"


def points(change: Interval) -> str:
    """Format an accuracy change in percentage points with its interval."""
    value, low, high = (100 * one for one in change)
    text = f"{value:+.1f} points ({low:+.1f} to {high:+.1f})"
    return text.replace("-", "\N{MINUS SIGN}")
