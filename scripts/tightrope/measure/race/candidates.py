"""Candidates of the race: speed-up and accuracy verdict of each variant, from its records."""

import statistics
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

from tightrope.artifacts.files import sha256
from tightrope.artifacts.manifest import open_manifest
from tightrope.artifacts.manifest_types import EngineManifest
from tightrope.machine.interference import fewest_pairs, undisturbed
from tightrope.records.accuracy import AccuracyRecord, comparable, compared
from tightrope.records.finalists import Candidate
from tightrope.records.latency import LatencyRecord, MachineSpeed, drift_std
from tightrope.records.record import require_engine
from tightrope.statistics import Interval, speedup

# factor of uncertainty of a ratio of times that were measured in different minutes
UNPAIRED = 1.25


class Measured(NamedTuple):
    """Engine manifest, records and file size of one variant before the race."""

    engine: Path
    latency: LatencyRecord
    accuracy: AccuracyRecord
    size_bytes: int


def read_measured(
    engines: Iterable[Path | str],
    latencies: Iterable[Path | str],
    accuracies: Iterable[Path | str],
) -> dict[str, Measured]:
    """Return the variants whose latency and accuracy records are both ok.

    Raises ArtifactError for a record of another engine.
    """
    found = {}
    for engine, latency, accuracy in zip(engines, latencies, accuracies, strict=True):
        records = LatencyRecord.read(latency), AccuracyRecord.read(accuracy)
        for path, record in zip((latency, accuracy), records, strict=True):
            require_engine(path, record.engine_sha256, sha256(engine))
        if all(record.status == "ok" for record in records):
            size = sum(
                file["size_bytes"]
                for file in open_manifest(engine, EngineManifest)["files"].values()
            )
            found[records[0].variant] = Measured(Path(engine), *records, size)
    return found


def candidates(
    measured: Mapping[str, Measured],
    baseline: str,
    budget: float,
    accept_disturbed: bool,
    place: int,
) -> list[Candidate]:
    """Return the variants with a speed-up at the shape with index `place`."""
    reference = measured.get(baseline)
    machine = MachineSpeed(one.latency for one in measured.values())
    found = []
    for name, one in measured.items():
        spread = machine.spread(one.latency, place)
        unsteady = drift_std(spread, one.latency.plan["loads"])
        faster = speed(one, reference, place, unsteady, accept_disturbed)
        if faster is not None:
            answers = reference.accuracy if reference else None
            found.append(Candidate(name, faster, verdict(one.accuracy, answers, budget)))
    return found


def speed(
    one: Measured,
    reference: Measured | None,
    place: int,
    unsteady: float,
    accept_disturbed: bool,
) -> Interval | None:
    """Return the speed-up over the baseline `reference`; None if disturbed and not accepted.

    `unsteady` adds the variation between minutes, see `statistics.speedup`, because candidates
    were measured in different minutes. A variant measured alone, because the baseline failed in
    its job, is compared with the baseline's times of other minutes, with the uncertainty
    `UNPAIRED`. Without a `reference` the value is calls per second.
    """
    shape = one.latency.shapes[place]
    kept = undisturbed(shape)
    if len(kept) < fewest_pairs(len(shape["pairs"]), one.latency.plan):
        if not accept_disturbed:
            return None
        kept = list(range(len(shape["pairs"])))
    if one is reference:
        return Interval(1.0, 1.0, 1.0)
    own = [shape["blocks_s"][index] for index in kept]
    if shape["baseline_blocks_s"] is not None:
        theirs = [shape["baseline_blocks_s"][index] for index in kept]
        return speedup(own, theirs, loads=one.latency.plan["loads"], unsteady=unsteady)
    theirs = reference.latency.shapes[place]["blocks_s"] if reference else [[1.0]]
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
    return compared(record, reference, budget)["verdict"]
