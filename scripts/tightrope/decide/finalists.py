"""Finalists of the race of a model at one shape, from the records of its variants.

Variants that may be the fastest, and the best quantized variant of each engine paired with its best
float variant.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any, NamedTuple, Self

from tightrope.artifacts.files import sha256
from tightrope.artifacts.manifest import open_manifest
from tightrope.artifacts.manifest_types import EngineManifest
from tightrope.records.accuracy import AccuracyRecord, judged
from tightrope.records.latency import (
    LatencyRecord,
    MachineSpeed,
    joules_per_call,
    kept_pairs,
    paired_speedup,
)
from tightrope.records.record import require_engine
from tightrope.statistics import Interval, percentile
from tightrope.variants import QUANTIZED, parse

# from deployable to not deployable
STANDINGS = ("kept", "undecided", "dropped")
# more contenders would get too few rounds each
MOST = 8
# factor of uncertainty of a ratio of times that were measured in different minutes
UNPAIRED = 1.25


class Candidate(NamedTuple):
    """A variant measured at a shape.

    `speedup` is over the baseline; `verdict` is that of its accuracy, `kept` where not evaluated;
    the energy is per call. Each of the last three is None where it is not known.
    """

    variant: str
    speedup: Interval
    verdict: str
    p99_ms: float | None = None
    memory_mb: float | None = None
    energy_j: float | None = None

    @property
    def standing(self) -> int:
        """Return 0 for a deployable accuracy verdict, more for a worse one."""
        return STANDINGS.index(self.verdict)

    def meets(self, goal: Mapping[str, Any]) -> bool:
        """Return whether it keeps the accuracy within the goal's bounds of p99 and memory.

        None is no bound; a value that is not known meets none.
        """
        bounds = (goal["p99_ms"], self.p99_ms), (goal["memory_mb"], self.memory_mb)
        known = all(most is None or (one is not None and one <= most) for most, one in bounds)
        return self.standing == 0 and known


class Finalists(NamedTuple):
    """The variants of one race.

    `contenders` may win, ordered by the lower end of their speed-up; `pairs` are a quantized and a
    float variant of the same engine, or two for a goal, which may also be contenders.
    """

    contenders: list[str]
    pairs: list[tuple[str, str]]

    @property
    def names(self) -> list[str]:
        """Return every variant once, those of a pair adjacent so that they meet in a heat."""
        found: dict[str, None] = {}
        for name in (*self.contenders, *(one for pair in self.pairs for one in pair)):
            pairs = [pair for pair in self.pairs if name in pair]
            found |= dict.fromkeys([name, *(one for pair in pairs for one in pair)])
        return list(found)


def finalists(candidates: Iterable[Candidate], wanted: Iterable[Candidate] = ()) -> Finalists:
    """Select the possible winners among deployable variants, and the best pair of each engine.

    `wanted` are those that meet the bounds of a goal: the possible winners among these race in
    pairs too, because faster variants that miss a bound eliminate them as contenders.
    """
    ordered = sorted(candidates, key=lambda one: -one.speedup.low)
    contenders = possible_winners(one for one in ordered if one.standing == 0)
    engines: dict[tuple[str, str], list[Candidate]] = {}
    for one in ordered:
        engines.setdefault(parse(one.variant)[:2], []).append(one)
    found = []
    for group in engines.values():
        quantized = best(group, lambda one: parse(one.variant).precision in QUANTIZED)
        plain = best(group, lambda one: parse(one.variant).precision not in QUANTIZED)
        if quantized and plain:
            found.append((quantized, plain))
    known = {frozenset(pair) for pair in found}
    goal = pairs_for_goal(possible_winners(wanted), contenders)
    return Finalists(contenders, [*found, *(one for one in goal if frozenset(one) not in known)])


def possible_winners(candidates: Iterable[Candidate]) -> list[str]:
    """Return the variants whose speed-up reaches the lower end of the highest, at most `MOST`."""
    ordered = sorted(candidates, key=lambda one: -one.speedup.low)
    return [one.variant for one in ordered if one.speedup.high >= ordered[0].speedup.low][:MOST]


def pairs_for_goal(wanted: list[str], contenders: list[str]) -> list[tuple[str, str]]:
    """Return pairs of the first of `wanted` with the others, none where that race is the same.

    A single one is paired with the first contender, so that it has a time of the same rounds.
    """
    if not wanted or wanted == contenders:
        return []
    others = wanted[1:] or contenders[:1]
    return [(wanted[0], other) for other in others if other != wanted[0]]


def best(group: list[Candidate], belongs: Callable[[Candidate], bool]) -> str | None:
    """Return the variant with the highest lower speed-up bound among those of the best standing."""
    found = [one for one in group if belongs(one)]
    return min(found, key=lambda one: (one.standing, -one.speedup.low)).variant if found else None


@dataclass(frozen=True, kw_only=True)
class RaceSettings:
    """What decides who takes part in a race, and when it ends.

    `baseline` is the name of the baseline, `decision` holds the settings of that name, `budget` is
    the fraction by which accuracy may fall. With `accept_disturbed`, variants with disturbed
    latencies may take part. `goal` has what it minimizes (`time`, `memory` or `energy`), its
    `shape` (None is all) and its bounds `p99_ms`, `memory_mb` and `accuracy_points`, each None
    where it has none.
    """

    baseline: str
    decision: dict[str, Any]
    budget: float
    accept_disturbed: bool
    goal: dict[str, Any] | None = None

    @classmethod
    def of(cls, job: Any) -> Self:
        """Return the settings of a job, see `tightrope.jobs.job.current_job`."""
        settings = job.settings
        return cls(
            baseline=settings.baseline,
            decision=settings.decision,
            budget=settings.budget_points / 100,
            accept_disturbed=settings.accept_disturbed,
            goal=dict(settings.items()).get("goal"),
        )


class Measured(NamedTuple):
    """Engine manifest, records and file size of one variant before the race."""

    engine: Path
    latency: LatencyRecord
    accuracy: AccuracyRecord
    size_bytes: int


def read_measured(
    engines: Iterable[Path | str], latencies: Iterable[Path | str], accuracies: Iterable[Path | str]
) -> tuple[dict[str, Measured], str | None]:
    """Return the variants whose records are both ok, and the first other one with the reason.

    Raises ArtifactError for a record of another engine.
    """
    found, failed = {}, None
    for engine, latency, accuracy in zip(engines, latencies, accuracies, strict=True):
        records = LatencyRecord.read(latency), AccuracyRecord.read(accuracy)
        for path, record in zip((latency, accuracy), records, strict=True):
            require_engine(path, record.engine_sha256, sha256(engine))
            if record.status != "ok":
                failed = failed or f"{record.variant}: {record.reason}"
        if all(record.status == "ok" for record in records):
            files = open_manifest(engine, EngineManifest)["files"].values()
            size = sum(file["size_bytes"] for file in files)
            found[records[0].variant] = Measured(Path(engine), *records, size)
    return found, failed


def candidates(measured: Mapping[str, Measured], race: RaceSettings, place: int) -> list[Candidate]:
    """Return the variants with a speed-up at the shape with index `place`.

    One that other load disturbed has none, unless that is accepted.
    """
    reference = measured.get(race.baseline)
    answers = reference.accuracy if reference else None
    machine = MachineSpeed(one.latency for one in measured.values())
    found = []
    for name, one in measured.items():
        shape, record = one.latency.shapes[place], one.latency
        pairs = kept_pairs(record, place, accept=race.accept_disturbed).counted
        if not pairs:
            continue
        p99_s = percentile([sample for index in pairs for sample in shape.blocks_s[index]], 99)
        candidate = Candidate(
            variant=name,
            speedup=speed(one, reference, place, pairs, machine.spread(record, place)),
            verdict=judged(one.accuracy, answers, race.budget)[0] or "kept",
            p99_ms=in_ms(p99_s),
            memory_mb=in_mb(record.peak_rss_bytes),
            energy_j=joules_per_call(shape, pairs),
        )
        found.append(candidate)
    return found


def speed(
    one: Measured, reference: Measured | None, place: int, pairs: list[int], spread: float
) -> Interval:
    """Return the speed-up over the baseline `reference` in these pairs of blocks.

    `spread` is that of the machine: candidates were measured in different minutes. A variant
    measured alone, because the baseline failed in its job, is compared with the baseline's times of
    other minutes, with the uncertainty `UNPAIRED`. Without a `reference` the value is calls per
    second.
    """
    if one is reference:
        return Interval(1.0, 1.0, 1.0)
    if paired := paired_speedup(one.latency, place, pairs, spread):
        return paired
    theirs = reference.latency.shapes[place].blocks_s if reference else [[1.0]]
    own = [one.latency.shapes[place].blocks_s[index] for index in pairs]
    ours, others = (
        fmean(sample for block in blocks for sample in block) for blocks in (own, theirs)
    )
    ratio = others / ours
    return Interval(ratio, ratio / UNPAIRED, ratio * UNPAIRED)


def racing_for(goal: Mapping[str, Any], candidates: Iterable[Candidate]) -> list[Candidate]:
    """Return the candidates that race for a goal.

    For a goal of time those that meet its bounds. No race of times decides memory or energy: of
    these goals it is the one with the least that meets the bounds, to compare its time with that
    of the fastest. None where that is not known.
    """
    within = [one for one in candidates if one.meets(goal)]
    if goal["minimize"] == "time":
        return within
    field = {"memory": "memory_mb", "energy": "energy_j"}[goal["minimize"]]
    known = [(value, one) for one in within if (value := getattr(one, field))]
    return [min(known, key=lambda pair: pair[0])[1]] if known else []


def in_ms(seconds: float | None) -> float | None:
    """Return seconds in milliseconds."""
    return None if seconds is None else 1e3 * seconds


def in_mb(size_bytes: float | None) -> float | None:
    """Return bytes in MB (10^6 bytes)."""
    return None if size_bytes is None else size_bytes / 1e6
