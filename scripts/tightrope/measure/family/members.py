"""Members of a family: what was measured of each, and the engine that stands for it at a shape."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from tightrope.artifacts.descent import parent_of
from tightrope.artifacts.manifest import open_manifest
from tightrope.artifacts.manifest_types import CheckpointManifest
from tightrope.measure.race.candidates import Measured, candidates, read_measured
from tightrope.records.accuracy import AccuracyRecord
from tightrope.records.finalists import Candidate, best
from tightrope.records.latency import LatencyRecord
from tightrope.records.race import RaceRecord, race_choice
from tightrope.variants import QUANTIZED, parse


class Rating(NamedTuple):
    """How candidates are rated: the baseline, the budget as a fraction, see `candidates`."""

    baseline: str
    budget: float
    accept_disturbed: bool


class Member(NamedTuple):
    """A model of a family on one device.

    `measured` are its variants with both records, `failed` says why another one has not. `data` is
    the manifest of its split for timing.
    """

    model: str
    parent: str | None
    task: str
    checkpoint: Path
    data: Path
    measured: dict[str, Measured]
    race: RaceRecord
    failed: str | None

    def rated(self, rating: Rating, place: int) -> list[Candidate]:
        """Return the variants with a speed-up at a shape, the one with the highest first."""
        found = candidates(self.measured, *rating, place)
        return sorted(found, key=lambda one: -one.speedup.low)

    def chosen(self, rating: Rating, place: int) -> str | None:
        """Return the variant that its race chose at a shape, else the one rated best."""
        sizes = {name: one.size_bytes for name, one in self.measured.items()}
        if self.race.heats:
            accept = rating.accept_disturbed
            variant = race_choice(self.race, place, sizes, accept_disturbed=accept).variant
            if variant is not None:
                return variant
        return best(self.rated(rating, place), lambda _: True)

    def quantized(self, rating: Rating, place: int) -> str | None:
        """Return the best quantized variant at a shape, None without any."""
        found = self.rated(rating, place)
        return best(found, lambda one: parse(one.variant).precision in QUANTIZED)

    def lacks(self) -> str:
        """Return why no engine stands for it."""
        return self.failed or "no variant has an undisturbed latency at a shape"


def read_members(
    *,
    engines: Sequence[Path | str],
    latencies: Sequence[Path | str],
    accuracies: Sequence[Path | str],
    races: Iterable[Path | str],
    checkpoints: Iterable[Path | str],
    data: Iterable[Path | str],
) -> dict[str, Member]:
    """Return the members by name, in the order of `checkpoints`.

    The first three are in the same order, with all variants of all members on the device; the
    others have a file per member, in the same order.
    """
    found = {}
    runs = list(zip(engines, latencies, accuracies, strict=True))
    for race, checkpoint, split in zip(races, checkpoints, data, strict=True):
        manifest = open_manifest(checkpoint, CheckpointManifest)
        name = Path(checkpoint).parent.parent.name
        own = [run for run in runs if LatencyRecord.read(run[1]).model == name]
        found[name] = Member(
            model=name,
            parent=parent_of(manifest),
            task=manifest["task"],
            checkpoint=Path(checkpoint),
            data=Path(split),
            measured=read_measured(*zip(*own, strict=True)) if own else {},
            race=RaceRecord.read(race),
            failed=first_failure(own),
        )
    return found


def first_failure(runs: Iterable[tuple[Path | str, Path | str, Path | str]]) -> str | None:
    """Return the first variant whose latency or accuracy failed, with the reason."""
    for _, latency, accuracy in runs:
        for record in (LatencyRecord.read(latency), AccuracyRecord.read(accuracy)):
            if record.status != "ok":
                return f"{record.variant}: {record.reason}"
    return None


def parents(members: Mapping[str, Member]) -> dict[str, str]:
    """Map each member to its parent, without those whose parent is no member."""
    return {
        name: one.parent for name, one in members.items() if one.parent and one.parent in members
    }
