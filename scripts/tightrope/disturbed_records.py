"""Which records of times hold a shape without a number, because other load disturbed it."""

from pathlib import Path

from tightrope.errors import ArtifactError
from tightrope.interference import fewest_pairs, undisturbed
from tightrope.race_results import is_undecided
from tightrope.records import LatencyRecord, RaceRecord

LATENCIES = (".latency.json", ".activation.json")
RACES = (".race.json",)


def is_disturbed(path: Path) -> bool:
    """Whether that record is one of times and some of them were disturbed."""
    try:
        if path.name.endswith(LATENCIES):
            return any_disturbed(LatencyRecord.read(path))
        return path.name.endswith(RACES) and is_undecided(RaceRecord.read(path))
    except ArtifactError:
        return False


def any_disturbed(record: LatencyRecord) -> bool:
    """Whether a shape has too few undisturbed pairs of blocks."""
    return any(
        len(undisturbed(shape)) < fewest_pairs(len(shape["pairs"]), record.plan)
        for shape in record.shapes
    )
