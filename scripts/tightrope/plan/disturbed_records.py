"""Find records of times without a result for some shape because other load disturbed it."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from tightrope.decide.race import is_undecided
from tightrope.errors import ArtifactError
from tightrope.records.family import FamilyRecord
from tightrope.records.latency import LatencyRecord, kept_pairs
from tightrope.records.profile import CausesRecord
from tightrope.records.race import RaceRecord, kept_rounds
from tightrope.records.record import Record
from tightrope.records.training import TrainingRecord
from tightrope.studies.study import Study, StudyRecord
from tightrope.studies.table import STUDIES
from tightrope.summary.pairs import counted_epochs, counted_rounds


def is_disturbed(path: Path) -> bool:
    """Return whether the file is a record of times with disturbed measurements."""
    kind = path.name.split(".")[-2]
    if kind not in KINDS:
        return False
    read, disturbed = KINDS[kind]
    try:
        return disturbed(read(path))
    except ArtifactError:
        return False


def any_latency(record: LatencyRecord) -> bool:
    """Return whether a shape has too few undisturbed pairs of blocks."""
    return any(kept_pairs(record, place).disturbed for place in range(len(record.shapes)))


def any_ratio(record: FamilyRecord) -> bool:
    """Return whether a pair of engines has too few undisturbed rounds."""
    shapes = (shape for heat in record.heats for shape in heat.shapes)
    return any(kept_rounds(shape, *pair).disturbed for shape in shapes for pair in shape.pairs)


def any_row(study: Study, record: StudyRecord) -> bool:
    """Return whether a row of a study was disturbed."""
    return any(one.disturbed for one in study.rows(record, False))


# by the suffix before .json
KINDS: dict[str, tuple[Callable[[Path], Record], Callable[[Any], bool]]] = {
    "latency": (LatencyRecord.read, any_latency),
    "activation": (LatencyRecord.read, any_latency),
    "race": (RaceRecord.read, is_undecided),
    "family": (FamilyRecord.read, any_ratio),
    "causes": (
        CausesRecord.read,
        lambda record: any(
            counted_rounds(record, one, accept=False).disturbed for one in record.causes
        ),
    ),
    "training": (TrainingRecord.read, lambda record: bool(counted_epochs(record).disturbed)),
    **{name: (study.read, partial(any_row, study)) for name, study in STUDIES.items()},
}
