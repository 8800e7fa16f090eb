"""Which variant to deploy at each shape, and why not the others."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence

from tightrope.decide.finalists import MOST
from tightrope.decide.race import DECIDED, Race, RaceKey, ratio_between
from tightrope.decide.result import Entry, LatencyRow, Reason, Result, Shape, interval_of
from tightrope.records.race import NONE_FASTER
from tightrope.variants import parse

Races = Mapping[RaceKey, Race]


class Rejected(Entry):
    """A variant that is not chosen."""

    variant: str
    reason: Reason
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
    why: Reason
    """Of code `goal` where the decision in `goals` at this shape says it."""
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


def disqualified(result: Result, row: LatencyRow | None) -> Reason | None:
    """Return why a result cannot be deployed at the shape of its row, or None."""
    if result.status != "ok":
        return Reason.of(result.status, reason=result.reason)
    if row is None:
        return Reason.of("unmeasured")
    if reason := unkept(result):
        return reason
    if row.disturbed and not row.provisional:
        return Reason.of("disturbed", why=row.disturbed)
    return None


def unkept(result: Result) -> Reason | None:
    """Return why the accuracy rules out deployment, None if it is kept or was not evaluated."""
    accuracy = result.accuracy
    if accuracy is None or accuracy.verdict == "kept":
        return None
    if accuracy.change is None:
        return Reason.of("accuracy_unknown")
    needed = accuracy.samples_needed
    told = {"verdict": accuracy.verdict, "change": [*accuracy.change]}
    return Reason.of("accuracy", **told, samples_needed=needed)


def beaten(name: str, chosen: str, rows: Mapping[str, LatencyRow], race: Race) -> Reason:
    """Return why a variant with kept accuracy lost to `chosen`, the winner of the race."""
    if parse(name).device != race.device:
        ours, theirs = (rows[one].paired_s for one in (name, chosen))
        return Reason.of("slower_device", call_s=ours, other=chosen, other_s=theirs)
    if name in race.left_out:
        return Reason.of("died", reason=race.left_out[name])
    if name in race.equal:
        return Reason.of("equal", within=race.within)
    if measured := interval_of(ratio_between(race, name, chosen)):
        code = "open" if name in race.open else "slower"
        return Reason.of(code, ratio=[*measured], other=chosen)
    if name in race.raced:
        return Reason.of("out", other=race.out.get(name))
    own, best = (interval_of(rows[one].speedup) for one in (name, chosen))
    if len(race.raced) >= MOST and own and best and own.high >= best.low:
        return Reason.of("too_many", most=MOST)
    if own is None:
        return Reason.of("slower_alone", call_s=rows[name].paired_s)
    return Reason.of("slower_paired", ratio=[*own])


def why(
    chosen: str, race: Race, fit: Sequence[Result], sizes: Mapping[str, int], keeping: int
) -> Reason:
    """Return why `chosen`, the race winner, was chosen among the variants in `fit`.

    `keeping` variants keep the accuracy, of which other load left those in `fit` a time.
    """
    others = {*race.equal, race.fastest} - {chosen, None}
    smallest = all(sizes[chosen] < sizes[name] for name in others if name)
    if len(fit) > 1 and race.equal:
        return Reason.of("as_fast", others=race.equal, within=race.within, smallest=smallest)
    if len(fit) > 1 and chosen != race.fastest:
        return Reason.of("hardly_slower", other=race.fastest, within=race.within, smallest=smallest)
    if len(fit) > 1 and race.open:
        code = "none_faster" if race.stop == NONE_FASTER else "time_limit"
        return Reason.of(code, others=race.open, within=race.within)
    code = ("fastest" if len(fit) > 1 else "only") + "_timed" * (len(fit) < keeping)
    judged = all(result.accuracy is not None for result in fit)
    return Reason.of(code, timed=len(fit), of=keeping, judged=judged)


def why_nothing(
    results: Sequence[Result],
    fit: Sequence[Result],
    undecided: Sequence[Race],
    disturbed: Sequence[str],
) -> Reason:
    """Return why nothing is recommended."""
    reasons = [race.reason for race in undecided if race.reason]
    if reasons:
        return Reason.of("disturbed", why=reasons[0])
    if disturbed:
        on_gpu = any(parse(name).device == "cuda" for name in disturbed)
        return Reason.of("all_disturbed", on_gpu=on_gpu)
    if fit:
        return Reason.of("not_run")
    measured = any(result.status == "ok" for result in results)
    return Reason.of("none_kept" if measured else "none_measured")


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
            own = [one for one in results if one.model == model and one.host in (host, None)]
            yield model, host, own


def shapes_of(results: Iterable[Result]) -> list[Shape]:
    """Return the distinct shapes at which the results were measured."""
    return list(dict.fromkeys(row.shape for result in results for row in result.latency))


def choose(
    model: str, host: str, results: Sequence[Result], shape: Shape, races: Races
) -> Recommendation:
    """Return what to deploy of a model on a host at a shape, why, and how certain that is."""
    devices = dict.fromkeys(one.device for one in results)
    keys = (RaceKey(model, host, device, shape) for device in devices)
    here = [races[key] for key in keys if key in races]
    rows = {one.variant: row for one in results if (row := one.at(shape))}
    reasons = {one.variant: disqualified(one, rows.get(one.variant)) for one in results}
    fit = [one for one in results if reasons[one.variant] is None]
    winners = {name: race for race in here if (name := race.variant) and reasons[name] is None}
    # other load disturbed what keeps the accuracy: it may be faster
    lost = [
        one.variant
        for one in results
        if one.status == "ok"
        and (row := rows.get(one.variant))
        and row.disturbed
        and unkept(one) is None
    ]
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
        reason = why(chosen, race, fit, sizes, keeping)
    else:
        reasons |= {one.variant: Reason.of("no_winner") for one in fit}
        reason = why_nothing(results, fit, undecided, disturbed)
    return Recommendation(
        model=model,
        host=host,
        shape=shape,
        variant=chosen,
        why=reason,
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
