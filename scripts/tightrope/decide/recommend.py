"""Which variant to deploy at each shape, and why not the others."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence

from tightrope.decide.finalists import MOST
from tightrope.decide.phrases import milliseconds
from tightrope.decide.race import DECIDED, Race, RaceKey, ratio_between
from tightrope.decide.result import Entry, LatencyRow, Result, Shape, interval_of
from tightrope.records.race import NONE_FASTER
from tightrope.statistics import Interval
from tightrope.variants import parse

Races = Mapping[RaceKey, Race]


class Rejected(Entry):
    """A variant that is not chosen."""

    variant: str
    reason: str
    """A variant of that host, or without a host, and one reason."""


class Recommendation(Entry):
    """Which variant to deploy at a shape.

    At the shape of a [goal](goal.md) `variant`, `why`, `provisional` and `rejected` are those
    of the goal; `equal`, `open`, `disturbed` and `undecided` are empty unless it is the variant
    that the race chose.
    """

    model: str
    host: str
    shape: Shape
    """Times of two hosts are never compared."""
    variant: str | None
    """None if none qualifies."""
    why: str
    """In words."""
    equal: list[str]
    """Variants that differ from it by no more than `decision.equal_within`, shown by the whole
    interval, and whose files are no smaller."""
    open: list[str]
    """Others that the race did not separate from it."""
    disturbed: list[str]
    """Variants with kept accuracy whose latency at this shape was disturbed, but no baseline that
    was beaten in pairs."""
    provisional: bool
    """Whether other load may have changed the recommendation."""
    undecided: list[str]
    """Faster variants for whose accuracy the evaluation split is too small, the fastest first;
    `accuracy.samples_needed` is how many examples it takes."""
    rejected: list[Rejected]
    """All other variants."""


def disqualified(result: Result, rows: Mapping[str, LatencyRow]) -> str | None:
    """Return why a result cannot be deployed at this shape, or None."""
    if result.status != "ok":
        return f"{result.status}: {result.reason}"
    row = rows.get(result.variant)
    if row is None:
        return "not measured at this shape"
    if reason := unkept(result):
        return reason
    if row.disturbed and not row.provisional:
        return f"disturbed: {row.disturbed}"
    return None


def unkept(result: Result) -> str | None:
    """Return why the accuracy rules out deployment, None if it is kept or was not evaluated."""
    accuracy = result.accuracy
    if accuracy is None or accuracy.verdict == "kept":
        return None
    change = accuracy.change
    if change is None:
        return "accuracy undecided: its baseline has no predictions"
    needed = accuracy.samples_needed
    remedy = f"; about {needed:,} examples could tell" if needed else ""
    return f"accuracy {accuracy.verdict}: {points(change)}{remedy}"


def beaten(name: str, chosen: str, rows: Mapping[str, LatencyRow], race: Race) -> str:
    """Explain why a variant with kept accuracy lost to `chosen`, the winner of the race."""
    if parse(name).device != race.device:
        ours, theirs = (call_time(rows[one]) for one in (name, chosen))
        return f"slower: {ours} per call, {chosen} takes {theirs}"
    if name in race.left_out:
        return f"failed in the race: {race.left_out[name]}"
    measured = interval_of(ratio_between(race, name, chosen))
    if name in race.equal:
        return f"equally fast (within {percent(race)}); not smaller"
    if measured is not None:
        told = times(measured, f"as fast as {chosen}")
        return f"not told apart: {told}" if name in race.open else f"slower: {told}"
    if name in race.raced:
        return f"slower than {race.out.get(name, 'others')} in the race"
    own, best = (interval_of(rows[one].speedup) for one in (name, chosen))
    if len(race.raced) >= MOST and own and best and own.high >= best.low:
        return f"not raced: {MOST} variants are surely faster than the baseline by more"
    told = times(own, "the baseline") if own else f"{call_time(rows[name])} per call"
    return f"slower: {told}"


def why(
    chosen: str, race: Race, fit: Sequence[Result], sizes: Mapping[str, int], keeping: int
) -> str:
    """Explain why `chosen`, the race winner, was chosen among the variants in `fit`.

    `keeping` variants keep the accuracy, of which other load left those in `fit` a time.
    """
    judged = all(result.accuracy is not None for result in fit)
    if len(fit) < keeping:
        among = f"the {len(fit)} with a time" if len(fit) > 1 else "the only one with a time"
        among += f", of {keeping} variants" + (" that keep the accuracy" if judged else "")
    else:
        among = f"the {len(fit)} variants " + ("that keep the accuracy" if judged else "measured")
    if len(fit) == 1 == keeping:
        return "the only variant that keeps the accuracy" if judged else "the only variant measured"
    if len(fit) == 1:
        return among
    if race.equal:
        same = ", ".join(race.equal)
        return f"as fast as {same} (within {percent(race)}); {tie_break(chosen, race, sizes)}"
    if chosen != race.fastest:
        return (
            f"by estimate at most {percent(race)} slower than {race.fastest}, not told apart; "
            f"{tie_break(chosen, race, sizes)}"
        )
    names = ", ".join(race.open)
    if names and race.stop == NONE_FASTER:
        told = f"not told apart from {names}, at most {percent(race)} faster"
        return f"the fastest by estimate; {told}"
    if names:
        return f"the fastest by estimate; time did not suffice to tell it from {names}"
    return f"the fastest of {among}"


def percent(race: Race) -> str:
    """Format the share within which two variants are equal."""
    return f"{100 * race.within:.2g} %"


def tie_break(chosen: str, race: Race, sizes: Mapping[str, int]) -> str:
    """Describe what decided among variants that are equal, or not told apart."""
    others = {*race.equal, race.fastest} - {chosen, None}
    if all(sizes[chosen] < sizes[name] for name in others if name):
        return "the smallest files"
    return "files of equal size, the first by name"


def why_nothing(
    results: Sequence[Result],
    fit: Sequence[Result],
    undecided: Sequence[Race],
    disturbed: Sequence[str],
) -> str:
    """Explain why nothing is recommended."""
    reasons = [race.reason for race in undecided if race.reason]
    if reasons:
        return f"disturbed: {reasons[0]}"
    if disturbed:
        on_gpu = any(parse(name).device == "cuda" for name in disturbed)
        gpu = ", or the GPU was throttled or shared," if on_gpu else ""
        return f"disturbed: other load kept the processors busy{gpu} while the variants were timed"
    if fit:
        return "the race was not run"
    if any(result.status == "ok" for result in results):
        return "no variant keeps the accuracy"
    return "nothing could be measured"


def call_time(row: LatencyRow) -> str:
    """Format the time per call by which variants are compared."""
    return "an unknown time" if row.paired_s is None else milliseconds(row.paired_s)


def times(speedup: Interval, other: str) -> str:
    """Format a ratio of speeds with its interval."""
    return f"{speedup.value:.2f} times {other} ({speedup.low:.2f} to {speedup.high:.2f})"


def points(change: Interval) -> str:
    """Format an accuracy change in percentage points with its interval."""
    value, low, high = (100 * one for one in change)
    text = f"{value:+.1f} points ({low:+.1f} to {high:+.1f})"
    return text.replace("-", "\N{MINUS SIGN}")


def recommendations(results: Sequence[Result], races: Races) -> list[Recommendation]:
    """Return a recommendation per model, host and shape; `variant` is None if none qualifies.

    Times of different hosts are never compared.
    """
    return [
        choose(model, host, own, shape, races)
        for model, host, own in measured_places(results)
        for shape in shapes_of(own)
    ]


def measured_places(results: Sequence[Result]) -> Iterator[tuple[str, str, list[Result]]]:
    """Yield each model and host with latencies, and the model's results there and nowhere."""
    for model, host in dict.fromkeys((one.model, one.host) for one in results if one.latency):
        if host is not None:
            yield (
                model,
                host,
                [one for one in results if one.model == model and one.host in (host, None)],
            )


def shapes_of(results: Iterable[Result]) -> list[Shape]:
    """Return the distinct shapes at which the results were measured."""
    return list(dict.fromkeys(row.shape for result in results for row in result.latency))


def rows_at(results: Iterable[Result], shape: Shape) -> dict[str, LatencyRow]:
    """Return the latency rows of a shape by variant."""
    return {
        result.variant: row for result in results for row in result.latency if row.shape == shape
    }


def choose(
    model: str, host: str, results: Sequence[Result], shape: Shape, races: Races
) -> Recommendation:
    """Return what to deploy of a model on a host at a shape, why, and how certain that is."""
    devices = dict.fromkeys(one.device for one in results)
    keys = (RaceKey(model, host, device, shape) for device in devices)
    here, rows = [races[key] for key in keys if key in races], rows_at(results, shape)
    reasons = {result.variant: disqualified(result, rows) for result in results}
    fit = [result for result in results if reasons[result.variant] is None]
    decided = {race.variant: race for race in here if race.variant is not None}
    winners = {name: race for name, race in decided.items() if reasons[name] is None}
    lost = [one.variant for one in results if may_be_faster(one, rows)]
    # by a winner that is significantly faster, measured in pairs
    beaten_baselines = {
        one.baseline
        for one in results
        if one.variant in winners
        and (speedup := rows[one.variant].speedup)
        and speedup.verdict == "faster"
    }
    disturbed = [name for name in lost if name not in beaten_baselines]
    undecided = [race for race in here if race.status != DECIDED]
    # devices do not race each other: compare times measured at different minutes
    chosen = min(winners, key=lambda name: rows[name].paired_s or math.inf, default=None)
    race = winners[chosen] if chosen else None
    if chosen and race:
        sizes = {result.variant: result.size_bytes or 0 for result in fit}
        keeping = len({*sizes, *lost})
        reasons |= {name: beaten(name, chosen, rows, race) for name in sizes}
        del reasons[chosen]
        words = why(chosen, race, fit, sizes, keeping)
    else:
        reasons |= {one.variant: "the race has no winner" for one in fit}
        words = why_nothing(results, fit, undecided, disturbed)
    return Recommendation(
        model=model,
        host=host,
        shape=shape,
        variant=chosen,
        why=words,
        equal=race.equal if race else [],
        open=race.open if race else [],
        disturbed=disturbed,
        provisional=bool(disturbed or undecided or (race and race.provisional)),
        undecided=faster_but_undecided(results, rows, rows[chosen].paired_s if chosen else None),
        rejected=[Rejected(name, reason) for name, reason in reasons.items() if reason],
    )


def faster_but_undecided(
    results: Iterable[Result], rows: Mapping[str, LatencyRow], seconds: float | None
) -> list[str]:
    """Return the variants that are faster than `seconds` per call and may keep the accuracy.

    More evaluation examples could show it. The fastest is first; all are taken without `seconds`.
    """
    candidates = {
        result.variant: own
        for result in results
        if (accuracy := result.accuracy)
        and accuracy.verdict == "undecided"
        and accuracy.samples_needed is not None
        and (own := rows[result.variant].paired_s if result.variant in rows else None)
        and (seconds is None or own < seconds)
    }
    return sorted(candidates, key=lambda name: candidates[name])


def may_be_faster(result: Result, rows: Mapping[str, LatencyRow]) -> bool:
    """Return whether accuracy is kept and the latency at this shape was disturbed."""
    row = rows.get(result.variant)
    return bool(result.status == "ok" and row and row.disturbed and unkept(result) is None)
