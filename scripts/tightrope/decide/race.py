"""Who won each race, as summary.json has it, and speed-ups on the scale of its rounds."""

import math
import statistics
from collections.abc import Iterable, Mapping
from itertools import combinations
from typing import Literal, NamedTuple

from msgspec.structs import replace

from tightrope.decide.result import (
    DISTURBED,
    Entry,
    LatencyRow,
    Ratio,
    Result,
    Shape,
    interval_of,
    same,
)
from tightrope.machine.host import host_key
from tightrope.records.race import (
    TIME_LIMIT,
    RacedShape,
    RaceRecord,
    common_rounds,
    is_equal,
    leader,
    ratio,
)
from tightrope.records.record import causes
from tightrope.statistics import Interval

DECIDED: Literal["decided"] = "decided"


class RaceRatio(Ratio, kw_only=True):
    """How many times as fast `variant` is as `other`."""

    variant: str
    other: str
    """Two that raced."""


class Race(Entry):
    """The race of the finalists of a model on one device at one shape."""

    model: str
    host: str
    device: str
    shape: Shape
    """Where it was run."""
    status: Literal["decided", "disturbed", "failed"]
    """`disturbed` where too few rounds were undisturbed, `failed` where no finalist is left."""
    variant: str | None
    """The winner, or None."""
    fastest: str | None
    """The fastest by estimate. If it is another than `variant`, the winner is slower by at most
    `within` by estimate, and its files are smaller, or as large and its name comes first."""
    equal: list[str]
    open: list[str]
    """As in a recommendation."""
    within: float
    """The share within which two variants are equal."""
    provisional: bool
    """Whether disturbed rounds count."""
    reason: str | None
    """Why it is disturbed, else None."""
    raced: list[str]
    """The variants that took part."""
    left_out: dict[str, str]
    """Why, for each variant that failed in the race."""
    out: dict[str, str]
    """For each significantly slower variant, the variant that beat it."""
    rounds: int
    """How many were run."""
    heats: int
    """More than one if the finalists did not all fit in memory."""
    stop: str | None
    """`one left`, `equal`, `none faster` (none can be faster than the winner by more than
    `within`), `time limit`; None where one variant alone had nothing to race against."""
    ratios: list[RaceRatio]
    """For any two variants with enough rounds."""


class RaceKey(NamedTuple):
    """Key of a race: model, host, device and shape."""

    model: str
    host: str | None
    device: str
    shape: Shape


class RaceChoice(NamedTuple):
    """The outcome of a race at one shape.

    `still` are the contenders that were not beaten, `fastest` the first of them by estimate, and
    `close` that one with those that are slower by at most `decision.equal_within`. `variant`, which
    is chosen, has the smallest files of these. A choice is `provisional` where only disturbed
    rounds give it.
    """

    still: list[str]
    fastest: str | None
    close: list[str]
    variant: str | None
    provisional: bool


def race_choice(
    record: RaceRecord, place: int, sizes: Mapping[str, int], *, accept_disturbed: bool
) -> RaceChoice:
    """Return the choice at the shape with index `place`; `sizes` of files are by variant."""
    last = record.heats[-1].shapes[place]
    still = still_in(record, last)
    first = winner(last, still) if still else None
    provisional = bool(still and first is None and accept_disturbed)
    if provisional:
        first = leader(last, still, all_rounds=True)
    within = record.decision["equal_within"]
    close = []
    if first is not None:
        others = (one for one in still if one != first)
        leads = {one: ratio(last, first, one, all_rounds=provisional) for one in others}
        close = [first, *(one for one, lead in leads.items() if lead and lead.value <= 1 + within)]
    # which of them is the fastest by estimate differs from run to run; the choice must not
    variant = min(close, key=lambda one: (sizes[one], one), default=None)
    return RaceChoice(still, first, close, variant, provisional)


def still_in(record: RaceRecord, shape: RacedShape) -> list[str]:
    """Return the contenders of the last heat that were not beaten and did not fail."""
    gone = set(shape.out) | set(record.left_out)
    return [name for name in shape.contenders if name not in gone]


def winner(shape: RacedShape, names: list[str]) -> str | None:
    """Return the fastest of the remaining engines, None where other load prevents a decision.

    That is the case with too few undisturbed rounds, or at the time limit where half of the rounds
    or more were disturbed. A single one has nobody to be compared with.
    """
    first = leader(shape, names)
    if first is None or len(names) == 1 or shape.stop != TIME_LIMIT:
        return first
    many = [
        2 * len(common_rounds(shape, first, name))
        > len(common_rounds(shape, first, name, all_rounds=True))
        for name in names
    ]
    return first if all(many) else None


def race_entries(
    records: Iterable[RaceRecord], sizes: Mapping[tuple[str, str], int], *, accept_disturbed: bool
) -> dict[RaceKey, Race]:
    """Return an entry per race; `sizes` are file sizes in bytes by (model, variant)."""
    found: dict[RaceKey, Race] = {}
    for record in records:
        own = {variant: size for (model, variant), size in sizes.items() if model == record.model}
        within = record.decision["equal_within"]
        for place in range(len(record.heats[-1].shapes)) if record.heats else ():
            heats = [one.shapes[place] for one in record.heats]
            names = list(dict.fromkeys(name for heat in heats for name in heat.blocks_s))
            last = heats[-1]
            choice = race_choice(record, place, own, accept_disturbed=accept_disturbed)
            still, first, close, chosen, provisional = choice
            rivals = [one for one in close if chosen and one != chosen]
            equal = [one for one in rivals if chosen and is_equal(ratio(last, chosen, one), within)]
            race = Race(
                **same(record, "model", "device"),
                host=host_key(record.host),
                shape=Shape(**last.sizes),
                status=(DECIDED if first else DISTURBED) if still else "failed",
                variant=chosen,
                fastest=first,
                equal=sorted(equal),
                open=[one for one in still if one != chosen and one not in equal],
                within=within,
                provisional=provisional,
                reason=why_not(record, last, still) if still and not chosen else None,
                raced=names,
                left_out={name: why for name, why in record.left_out.items() if name in names},
                out={name: one.by for heat in heats for name, one in heat.out.items()},
                rounds=sum(len(heat.loads) for heat in heats),
                heats=len(heats),
                stop=last.stop,
                ratios=ratios(heats, names, all_rounds=provisional),
            )
            found[RaceKey(race.model, race.host, race.device, race.shape)] = race
    return found


def is_undecided(record: RaceRecord) -> bool:
    """Return whether too few undisturbed rounds leave any shape of the race without a winner."""
    shapes = record.heats[-1].shapes if record.heats else ()
    every = ((shape, still_in(record, shape)) for shape in shapes)
    return any(still and winner(shape, still) is None for shape, still in every)


def why_not(record: RaceRecord, shape: RacedShape, still: list[str]) -> str:
    """Explain why a race has no winner."""
    kept = min(len(common_rounds(shape, still[0], one)) for one in still[1:])
    facts = [fact for name in still for fact in shape.facts[name] if fact]
    words = causes(facts, shape.foreign_cores, record.busiest)
    left = f"other load disturbed the race: {kept} of {len(shape.loads)} rounds are left"
    return f"{left}; {words}" if words else left


def ratios(heats: Iterable[RacedShape], names: list[str], *, all_rounds: bool) -> list[RaceRatio]:
    """Return the speed-up of `variant` over `other` for all pairs with enough rounds."""
    found: dict[tuple[str, str], RaceRatio] = {}
    for heat in heats:
        here = [name for name in names if name in heat.blocks_s]
        for one, other in combinations(here, 2):
            if measured := ratio(heat, one, other, all_rounds=all_rounds):
                turned = Interval(1 / measured.value, 1 / measured.high, 1 / measured.low)
                found[one, other] = RaceRatio.of(measured, variant=one, other=other)
                found[other, one] = RaceRatio.of(turned, variant=other, other=one)
    return [*found.values()]


def ratio_between(race: Race, one: str, other: str) -> RaceRatio | None:
    """Return the speed-up of `one` over `other`, None if the race has no such ratio."""
    return next((row for row in race.ratios if (row.variant, row.other) == (one, other)), None)


def on_one_scale(
    rows: Mapping[str, LatencyRow], race: Race, baseline: str | None
) -> dict[str, Ratio]:
    """Return the speed-ups of the raced variants over the baseline, from the race ratios.

    All ratios share one scale factor, so that they cannot contradict the race. It is the baseline's
    race ratio if the baseline raced, else the geometric mean of paired speed-up over race ratio,
    clamped to the interval of the best variant: a variant left out of the race because it was
    significantly slower stays slower. Each interval adds those of the scale and of the race in
    quadrature.
    """
    chosen = race.variant
    if chosen is None:
        return {}
    ratios = ((name, interval_of(ratio_between(race, name, chosen))) for name in race.raced)
    known = {name: logs(one) for name, one in ratios if one} | {chosen: (0.0, 0.0)}
    if baseline in known:
        scale, half = -known[baseline][0], known[baseline][1]
    else:
        paired = {
            name: logs(speedup)
            for name, row in rows.items()
            if name in known and (speedup := interval_of(row.speedup))
        }
        if not paired:
            return {}
        best = max(paired, key=lambda name: paired[name][0] - paired[name][1])
        half = paired[best][1]
        mean = statistics.fmean(value - known[name][0] for name, (value, _) in paired.items())
        middle = paired[best][0] - known[best][0]
        scale = min(max(mean, middle - half), middle + half)
    found = {}
    for name, (off, own_half) in known.items():
        if name == baseline:
            continue
        both = math.hypot(own_half, half)
        ends = Interval(*(math.exp(scale + off + end) for end in (0.0, -both, both)))
        found[name] = Ratio.of(ends)
    return found


def logs(ratio: Interval) -> tuple[float, float]:
    """Return the log of a ratio and half the width of its interval in log space."""
    return math.log(ratio.value), math.log(ratio.high / ratio.low) / 2


def with_races(results: list[Result], races: Mapping[RaceKey, Race]) -> list[Result]:
    """Return the results with `raced` and `paired_s` in each latency row, on a common scale.

    `paired_s` is the latency of a row wherever one is shown, and the inputs per second are the
    batch over it: the baseline's time over the speed-up, and for the baseline that time. Without a
    speed-up it is the row's own median. It is None if the row is disturbed.
    """
    raced = [replace(one, latency=[replace(row) for row in one.latency]) for one in results]
    groups: dict[RaceKey, dict[str, LatencyRow]] = {}
    baselines: dict[RaceKey, str | None] = {}
    for one in raced:
        for row in one.latency:
            key = RaceKey(one.model, one.host, one.device, row.shape)
            groups.setdefault(key, {})[one.variant] = row
            baselines.setdefault(key, one.baseline)
    for key, rows in groups.items():
        baseline, race = baselines[key], races.get(key)
        scale = on_one_scale(rows, race, baseline) if race else {}
        seconds = baseline_seconds(rows, baseline)
        for name, row in rows.items():
            speedup, own = scale.get(name, row.speedup), own_seconds(row)
            if seconds and speedup and speedup.ratio is not None:
                own = seconds / speedup.ratio
            elif own and name == baseline:
                own = seconds
            row.speedup, row.raced, row.paired_s = speedup, name in scale, own
            row.throughput_per_s = row.shape.batch / own if own else None
    return raced


def own_seconds(row: LatencyRow) -> float | None:
    """Return the median time per call, the mean for few calls, None if disturbed."""
    return row.p50_s or row.mean_s


def baseline_seconds(rows: Mapping[str, LatencyRow], baseline: str | None) -> float | None:
    """Return the baseline's time per call: the median over the jobs that measured it undisturbed.

    Each variant is measured in pairs with it, in minutes at which the machine may be faster or
    slower, so one job alone would decide the scale of all. None where no job did.
    """
    own = own_seconds(rows[baseline]) if baseline is not None and baseline in rows else None
    beside = [
        seconds * speedup.value
        for row in rows.values()
        if (speedup := interval_of(row.speedup)) and (seconds := own_seconds(row))
    ]
    known = [own, *beside] if own else beside
    return statistics.median(known) if known else None
