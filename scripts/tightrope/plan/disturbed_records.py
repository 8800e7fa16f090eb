"""Find records of times without a result for some shape because other load disturbed it."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from tightrope.errors import ArtifactError
from tightrope.machine.interference import MAX_FOREIGN_CORES, fewest_pairs
from tightrope.records.family import FamilyRecord
from tightrope.records.family import is_disturbed as any_ratio
from tightrope.records.idleness import IdlenessRecord
from tightrope.records.latency import LatencyRecord
from tightrope.records.profile import CausesRecord
from tightrope.records.race import RaceRecord
from tightrope.records.record import Record
from tightrope.records.throughput import ThroughputRecord
from tightrope.records.traffic import TrafficRecord
from tightrope.records.training import TrainingRecord
from tightrope.summary.causes import why_disturbed as why_causes_were
from tightrope.summary.idleness import why_disturbed as why_pauses_were
from tightrope.summary.races import is_undecided
from tightrope.summary.traffic import why_disturbed as why_traffic_was
from tightrope.summary.training import why_disturbed as why_training_was


def is_disturbed(path: Path) -> bool:
    """Return whether the file is a record of times with disturbed measurements."""
    kind = path.name.split(".")[-2]
    if kind not in KINDS:
        return False
    record, disturbed = KINDS[kind]
    try:
        return disturbed(record.read(path))
    except ArtifactError:
        return False


def any_latency(record: LatencyRecord) -> bool:
    """Return whether a shape has too few undisturbed pairs of blocks."""
    return any(
        len(kept) < fewest_pairs(len(shape["pairs"]), record.plan)
        for shape, kept in zip(record.shapes, record.undisturbed_pairs, strict=True)
    )


def any_throughput(record: ThroughputRecord) -> bool:
    """Return whether a measured point was disturbed."""
    return any(
        point["foreign_cores"] > MAX_FOREIGN_CORES
        for point in record.points
        if point["reason"] is None
    )


# by the suffix before .json
KINDS: dict[str, tuple[type[Record], Callable[[Any], bool]]] = {
    "latency": (LatencyRecord, any_latency),
    "activation": (LatencyRecord, any_latency),
    "race": (RaceRecord, is_undecided),
    "family": (FamilyRecord, any_ratio),
    "traffic": (
        TrafficRecord,
        lambda record: any(why_traffic_was(record, one) for one in record.plan["padding"]),
    ),
    "throughput": (ThroughputRecord, any_throughput),
    "idleness": (
        IdlenessRecord,
        lambda record: any(why_pauses_were(record, one) for one in record.plan["pauses"]),
    ),
    "causes": (
        CausesRecord,
        lambda record: any(why_causes_were(record, one["rounds"]) for one in record.causes),
    ),
    "training": (TrainingRecord, lambda record: why_training_was(record) is not None),
}
