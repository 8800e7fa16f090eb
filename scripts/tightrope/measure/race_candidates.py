"""Candidates of the race: speed-up and accuracy verdict of each variant, from its records."""

import statistics
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, Self

from tightrope.artifacts.files import sha256
from tightrope.artifacts.manifest import open_manifest
from tightrope.artifacts.manifest_types import EngineManifest
from tightrope.records.accuracy import AccuracyRecord, comparable, compared
from tightrope.records.finalists import Candidate
from tightrope.records.latency import (
    LatencyRecord,
    MachineSpeed,
    drift_std,
    joules_per_call,
    kept_pairs,
)
from tightrope.records.record import require_engine
from tightrope.statistics import Interval, percentile, speedup

# factor of uncertainty of a ratio of times that were measured in different minutes
UNPAIRED = 1.25
MILLISECONDS, MEGABYTE = 1000.0, 1e6


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
    """Return the variants with a speed-up at the shape with index `place`."""
    reference = measured.get(race.baseline)
    machine = MachineSpeed(one.latency for one in measured.values())
    found = []
    for name, one in measured.items():
        spread = machine.spread(one.latency, place)
        unsteady = drift_std(spread, one.latency.plan["loads"])
        faster = speed(one, reference, place, unsteady, race.accept_disturbed)
        if faster is not None:
            answers = reference.accuracy if reference else None
            found.append(Candidate(name, faster, verdict(one.accuracy, answers, race.budget)))
    return found


def speed(
    one: Measured, reference: Measured | None, place: int, unsteady: float, accept_disturbed: bool
) -> Interval | None:
    """Return the speed-up over the baseline `reference`; None if disturbed and not accepted.

    `unsteady` adds the variation between minutes, see `statistics.speedup`, because candidates
    were measured in different minutes. A variant measured alone, because the baseline failed in
    its job, is compared with the baseline's times of other minutes, with the uncertainty
    `UNPAIRED`. Without a `reference` the value is calls per second.
    """
    shape, kept = one.latency.shapes[place], kept_pairs(one.latency, place, accept=accept_disturbed)
    if kept.disturbed and not kept.provisional:
        return None
    if one is reference:
        return Interval(1.0, 1.0, 1.0)
    own = [shape.blocks_s[index] for index in kept.calls]
    if shape.baseline_blocks_s is not None:
        theirs = [shape.baseline_blocks_s[index] for index in kept.calls]
        return speedup(own, theirs, loads=one.latency.plan["loads"], unsteady=unsteady)
    theirs = reference.latency.shapes[place].blocks_s if reference else [[1.0]]
    ratio = mean_seconds(theirs) / mean_seconds(own)
    return Interval(ratio, ratio / UNPAIRED, ratio * UNPAIRED)


def mean_seconds(blocks: list[list[float]]) -> float:
    """The mean of all calls in these blocks."""
    return statistics.fmean(sample for block in blocks for sample in block)


def verdict(record: AccuracyRecord, reference: AccuracyRecord | None, budget: float) -> str:
    """Return the verdict on the accuracy change, `kept` for the baseline or if not evaluated."""
    if not record.predictions or record.labels is None or record is reference:
        return "kept"
    if reference is None or not comparable(record, reference):
        return "undecided"
    return compared(record, reference, budget).verdict


def racing_for(
    goal: Mapping[str, Any],
    candidates: Iterable[Candidate],
    measured: Mapping[str, Measured],
    place: int,
) -> list[Candidate]:
    """Return the candidates that race for a goal at the shape with index `place`.

    For a goal of time those that meet its bounds. No race of times decides memory or energy: of
    these goals it is the one with the least that meets the bounds, to compare its time with that
    of the fastest. None where that is not known.
    """
    within = [
        one
        for one in candidates
        if one.standing == 0 and meets(goal, measured[one.variant].latency, place)
    ]
    if goal["minimize"] == "time":
        return within
    known = [(value, one) for one in within if (value := needs(goal, measured[one.variant], place))]
    return [min(known, key=lambda pair: pair[0])[1]] if known else []


def needs(goal: Mapping[str, Any], one: Measured, place: int) -> float | None:
    """Return the memory or energy that a goal minimizes, in MB or J, None if it is not known."""
    if goal["minimize"] == "memory":
        return memory_mb(one.latency)
    kept = kept_pairs(one.latency, place, accept=True)  # a candidate that was accepted disturbed
    return joules_per_call(one.latency.shapes[place], kept.calls)


def meets(goal: Mapping[str, Any], record: LatencyRecord, place: int) -> bool:
    """Return whether a variant is within the goal's `p99_ms` and `memory_mb` at a shape.

    None is no bound, a value that is not known meets none.
    """
    blocks = record.shapes[place].blocks_s
    kept = kept_pairs(record, place, accept=True).calls  # see `needs`
    seconds = percentile([sample for index in kept for sample in blocks[index]], 99)
    p99_ms = None if seconds is None else MILLISECONDS * seconds
    bounds = (goal["p99_ms"], p99_ms), (goal["memory_mb"], memory_mb(record))
    return all(most is None or (value is not None and value <= most) for most, value in bounds)


def memory_mb(record: LatencyRecord) -> float | None:
    """Return the peak resident memory in MB (10^6 bytes), None where it is not known."""
    return None if record.peak_rss_bytes is None else record.peak_rss_bytes / MEGABYTE
