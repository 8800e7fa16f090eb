"""Time the engines of a family of models in the same rounds in one job, and record them."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tightrope.artifacts.files import sha256
from tightrope.errors import ArtifactError, TightropeError
from tightrope.machine.cores import pinned_processors
from tightrope.machine.quiet import QuietMachine
from tightrope.measure.family.comparisons import Comparison, comparison
from tightrope.measure.family.heats import run_heats
from tightrope.measure.family.members import Member, Rating, read_members
from tightrope.measure.race.candidates import Measured
from tightrope.measure.race.measure import Entrants, RaceSettings, timed_engines
from tightrope.measure.settings import TimingSettings
from tightrope.measure.timed_engine import TimedEngine
from tightrope.records.family import FAMILY, FamilyRecord, engine_name


@dataclass(frozen=True, kw_only=True)
class FamilyFiles:
    """Files of all variants of a family on one device, and of its members, see `read_members`.

    `logits` are read with the accuracies.
    """

    engines: Sequence[Path | str]
    latencies: Sequence[Path | str]
    accuracies: Sequence[Path | str]
    races: Sequence[Path | str]
    checkpoints: Sequence[Path | str]
    data: Sequence[Path | str]
    logits: Sequence[Path | str] = ()


def race_family(
    files: FamilyFiles,
    target: Path | str,
    settings: TimingSettings,
    race: RaceSettings,
    *,
    root: str,
    device: str,
) -> None:
    """Write the FamilyRecord of the models that start from `root`, on `device`.

    A member without an engine is recorded with the reason; where fewer than two engines are left,
    the record has failed.
    """
    began = time.monotonic()
    record = empty_record(settings, race, root, device)
    paths = {name: one for name, one in vars(files).items() if name != "logits"}
    members = read_members(**paths)
    timed = engines_of(members, record, settings)
    left = {name: one for name, one in members.items() if name not in record.unraced}
    rating = Rating(race.baseline, race.budget, race.accept_disturbed)
    places = range(len(settings.shapes))
    compared = [comparison(left, root, rating, place) for place in places]
    name_unraced(record, left, compared)
    machine = QuietMachine(record.processors, settings.quiet_seconds, settings.terminal)
    ended = settings.execution.limits.ended
    if ended is None and any(len(one.engines().names) > 1 for one in compared):
        measured = measured_of(left)
        run_heats(record, timed, measured, compared, machine, settings.execution.limits)
        add_shapes(record, settings, measured, compared)
    else:
        record.status, record.reason = "failed", ended or why_not_raced(record)
        record.transient = ended is not None
    record.seconds = time.monotonic() - began
    record.lost_s, record.busiest = machine.lost_s, machine.busiest
    record.write(target)


def empty_record(
    settings: TimingSettings, race: RaceSettings, root: str, device: str
) -> FamilyRecord:
    """Return the record of a family in which nothing was timed."""
    execution = settings.execution
    return FamilyRecord(
        model=root,
        variant=FAMILY,
        device=device,
        host=execution.host(),
        libraries=execution.libraries,
        threads=execution.threads,
        plan=settings.plan,
        decision=race.decision,
        processors=pinned_processors(execution.threads),
        engines_sha256={},
    )


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
            record.unraced[model] = one.lacks()
            continue
        inputs = Entrants(
            engines=(), latencies=(), accuracies=(), checkpoint=one.checkpoint, data=one.data
        )
        try:
            found |= timed_engines(inputs, measured_of({model: one}), record, settings)
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


def name_unraced(
    record: FamilyRecord, members: Mapping[str, Member], compared: Sequence[Comparison]
) -> None:
    """Record why a member has an engine at no shape."""
    for model, one in members.items():
        if not any(model in comparison.chosen for comparison in compared):
            record.unraced[model] = one.lacks()


def add_shapes(
    record: FamilyRecord,
    settings: TimingSettings,
    measured: Mapping[str, Measured],
    compared: Sequence[Comparison],
) -> None:
    """Add its sizes and the roles of its engines to each shape, and the raced engines' digests."""
    for heat in record.heats:
        known = zip(settings.shapes, heat["shapes"], compared, strict=True)
        heat["shapes"] = [{**shape, **one, **roles.recorded()} for shape, one, roles in known]
        for shape in heat["shapes"]:
            names = shape["blocks_s"]
            record.engines_sha256 |= {name: sha256(measured[name].engine) for name in names}


def why_not_raced(record: FamilyRecord) -> str:
    """Return why there is nothing to compare."""
    reasons = "; ".join(f"{model}: {reason}" for model, reason in record.unraced.items())
    return f"fewer than two engines to compare; {reasons}" if reasons else "nothing to compare"
