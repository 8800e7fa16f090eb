"""Time the engines of a family of models in the same rounds in one job, and record them."""

import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from tightrope.artifacts.files import sha256
from tightrope.artifacts.manifest import open_manifest, parent_of
from tightrope.artifacts.manifest_types import CheckpointManifest
from tightrope.decide.finalists import (
    Finalists,
    Measured,
    RaceSettings,
    best,
    candidates,
    read_measured,
)
from tightrope.decide.race import race_choice
from tightrope.errors import ArtifactError, TightropeError, WorkFailed
from tightrope.jobs.child import set_failure
from tightrope.measure.race import facts_of_race, run_heats, timed_engines
from tightrope.measure.race_rounds import RaceAtShape
from tightrope.measure.run import TimingSettings
from tightrope.measure.timed_engine import TimedEngine
from tightrope.records.family import FAMILY, FamilyRecord, Roles, engine_name
from tightrope.records.race import RaceRecord, ratio
from tightrope.variants import QUANTIZED, parse

# why the rounds ended before the time limit
PRECISE = "precise"
NOTHING = "nothing to compare"


class Member(NamedTuple):
    """A model of a family on one device.

    `measured` are its variants with both records, `lacks` says why no engine stands for it. `data`
    is the manifest of its split for timing.
    """

    model: str
    parent: str | None
    task: str
    checkpoint: Path
    data: Path
    measured: dict[str, Measured]
    race: RaceRecord
    lacks: str

    def chosen(self, race: RaceSettings, place: int) -> str | None:
        """Return the variant that its race chose at a shape, else the one rated best."""
        sizes = {name: one.size_bytes for name, one in self.measured.items()}
        if self.race.heats:
            accept = race.accept_disturbed
            variant = race_choice(self.race, place, sizes, accept_disturbed=accept).variant
            if variant is not None:
                return variant
        return best(candidates(self.measured, race, place), lambda _: True)


def read_members(
    *,
    engines: Sequence[Path | str],
    latencies: Sequence[Path | str],
    accuracies: Sequence[Path | str],
    races: Sequence[Path | str],
    checkpoints: Sequence[Path | str],
    data: Sequence[Path | str],
) -> dict[str, Member]:
    """Return the members by name, in the order of the checkpoints.

    The first three are in the same order, with all variants of all members; `races`, `checkpoints`
    and `data` have a file per member, in the same order.
    """
    found = {}
    runs = list(zip(engines, latencies, accuracies, strict=True))
    for race, checkpoint, split in zip(races, checkpoints, data, strict=True):
        manifest = open_manifest(checkpoint, CheckpointManifest)
        name = Path(checkpoint).parent.parent.name
        own = [run for run in runs if Path(run[1]).parent.name == name]
        measured, failed = read_measured(*zip(*own, strict=True)) if own else ({}, None)
        found[name] = Member(
            model=name,
            parent=parent_of(manifest),
            task=manifest["task"],
            checkpoint=Path(checkpoint),
            data=Path(split),
            measured=measured,
            race=RaceRecord.read(race),
            lacks=failed or "no variant has an undisturbed latency at a shape",
        )
    return found


def roles_of(members: Mapping[str, Member], root: str, race: RaceSettings, place: int) -> Roles:
    """Return the engines at the shape with index `place`."""
    chosen = {
        name: engine_name(name, variant)
        for name, one in members.items()
        if (variant := one.chosen(race, place))
    }
    measured = members[root].measured if root in members else {}
    rated = candidates(measured, race, place)
    quantized = best(rated, lambda one: parse(one.variant).precision in QUANTIZED)
    return Roles(
        chosen=chosen,
        baseline=engine_name(root, race.baseline) if race.baseline in measured else None,
        quantized=engine_name(root, quantized) if quantized else None,
    )


def references_of(roles: Roles, root: str) -> list[str]:
    """Return the engines of the root, to which those of all models are compared."""
    found = (roles.baseline, roles.chosen.get(root), roles.quantized)
    return list(dict.fromkeys(one for one in found if one))


def engines_in(roles: Roles, root: str, parents: Mapping[str, str | None]) -> Finalists:
    """Return all engines at a shape, and the pairs whose ratio is a result."""
    references = references_of(roles, root)
    pairs = {}
    for model, name in roles.chosen.items():
        for other in (*references, roles.chosen.get(parents[model] or "")):
            if other and other != name:
                pairs[frozenset((name, other))] = (name, other)
    names = dict.fromkeys([*references, *roles.chosen.values()])
    return Finalists(list(names), list(pairs.values()))


class FamilyAtShape(RaceAtShape):
    """Blocks of the engines at one shape; none is eliminated, because each ratio is a result.

    The rounds end when the interval of each pair is no wider than the share `within` on each side.
    """

    def running(self) -> list[str]:
        """Return the engines of the next round: all that have not failed."""
        names = [name for name in self.shape.blocks_s if name not in self.dead]
        return names if len(names) > 1 else []

    def decide(self) -> None:
        """Stop if all ratios are known precisely."""
        if self.is_precise():
            self.shape.stop = PRECISE
        else:
            self.other_load = self.is_precise(loads=2)

    def is_precise(self, *, loads: int | None = None) -> bool:
        """Return whether all ratios are precise, or would be if the rounds had so many loads."""
        pairs = [pair for pair in self.shape.pairs if not self.dead & set(pair)]
        found = [ratio(self.shape, *pair, loads=loads) for pair in pairs]
        return all(one is not None and one.high <= (1 + self.within) * one.value for one in found)


def race_family(
    target: Path | str,
    settings: TimingSettings,
    race: RaceSettings,
    *,
    root: str,
    device: str,
    **files: Sequence[Path | str],
) -> None:
    """Write the FamilyRecord of the models that start from `root`, on `device`.

    The files are those of `read_members`. The root's engines, to which all others are compared, run
    in each heat. A member without an engine is recorded with the reason; where fewer than two
    engines are left, the record has failed.
    """
    began = time.monotonic()
    facts = facts_of_race(settings, race, device)
    record = FamilyRecord(**facts, model=root, variant=FAMILY, engines_sha256={})
    members = read_members(**files)
    timed = engines_of(members, record, settings)
    left = {name: one for name, one in members.items() if name not in record.unraced}
    record.roles = [roles_of(left, root, race, place) for place in range(len(settings.shapes))]
    for model, one in left.items():
        if not any(model in roles.chosen for roles in record.roles):
            record.unraced[model] = one.lacks
    parents = {name: one.parent for name, one in left.items()}
    chosen = [engines_in(roles, root, parents) for roles in record.roles]
    machine, limits = settings.machine(record.processors), settings.execution.limits
    if limits.ended is None and any(len(one.names) > 1 for one in chosen):
        measured = measured_of(left)
        always = dict.fromkeys(name for one in record.roles for name in references_of(one, root))
        known = timed, measured, chosen, machine, settings
        run_heats(record, *known, always=list(always), kind=FamilyAtShape)
        names = dict.fromkeys(name for one in chosen for name in one.names)
        record.engines_sha256 = {name: sha256(measured[name].engine) for name in names}
    else:
        reasons = "; ".join(f"{model}: {reason}" for model, reason in record.unraced.items())
        nothing = f"fewer than two engines to compare; {reasons}" if reasons else NOTHING
        error = WorkFailed(limits.ended or nothing, limits.ended is not None)
        set_failure(record, error, FAMILY, limits)
    record.seconds = time.monotonic() - began
    record.lost_s, record.busiest = machine.lost_s, machine.busiest
    record.write(target)


def engines_of(
    members: Mapping[str, Member], record: FamilyRecord, settings: TimingSettings
) -> dict[str, TimedEngine]:
    """Return the engines of all members by name, not yet loaded, each with its model's inputs.

    A member that does not take the shapes, or has no measured variant, becomes `unraced`.
    """
    found: dict[str, TimedEngine] = {}
    root = members.get(record.model)
    for model, one in members.items():
        if root and one.task != root.task:
            record.unraced[model] = f"its task is {one.task}, that of {root.model} {root.task}"
            continue
        if not one.measured:
            record.unraced[model] = one.lacks
            continue
        try:
            own = measured_of({model: one})
            found |= timed_engines(one.checkpoint, one.data, own, settings)
        except ArtifactError:
            raise
        except TightropeError as error:
            record.unraced[model] = str(error)
    return found


def measured_of(members: Mapping[str, Member]) -> dict[str, Measured]:
    """Return what was measured of each engine before, by its name."""
    return {
        engine_name(model, variant): measured
        for model, one in members.items()
        for variant, measured in one.measured.items()
    }
