"""Measure the latency of structures of a trained model, side by side with the model itself."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Annotated, Any, NotRequired, TypedDict

from msgspec import Meta

from tightrope.artifacts.content import read_artifact, write_artifact
from tightrope.artifacts.files import sha256
from tightrope.errors import ArtifactError, in_one_line
from tightrope.jobs.execution import Execution
from tightrope.measure.settings import TimingSettings
from tightrope.measure.structures.build import in_child, structure_in, timed_structures
from tightrope.measure.structures.points import Ratios, points
from tightrope.model.structures import Structure
from tightrope.records.record import FEWEST_ROUNDS, blocks_of, time_ratio, undisturbed_rounds

SCHEMA = 1
# structures measured in the same rounds, besides the model itself
GROUP = 3


def measure_structures(
    checkpoint: Path, data: Path, target: Path | str, settings: TimingSettings, *, host: str
) -> None:
    """Write the rounds of the structures of `points.points`, the raw samples of the latency table.

    Each of `groups` has `structures`, the model itself first, and `rounds` with a block of each,
    see `tightrope.records.record`. The engines are built from the model with manifest `checkpoint`
    and deleted. Raises TightropeError where one cannot be built or run, and for a model whose
    blocks are not found.
    """
    execution = settings.execution
    parent: Structure = in_child(partial(structure_in, checkpoint), execution.limits)
    heads = settings.plan.get("heads", False)
    smaller, groups = points(parent, fewer_heads=heads)[1:], []
    with timed_structures(checkpoint, data, settings, parent) as timed:
        for first in range(0, len(smaller), GROUP):
            group = smaller[first : first + GROUP]
            structures = [one.document() for one in (parent, *group)]
            groups.append({"structures": structures, "rounds": timed.rounds(group)})
    write_artifact(
        target,
        {
            "schema": SCHEMA,
            "variant": settings.plan["variant"],
            "shape": settings.shapes[0],
            "host": host,
            "threads": execution.threads,
            "processors": timed.machine.processors,
            "libraries": execution.libraries,
            "checkpoint_sha256": sha256(checkpoint),
            "parent": parent.document(),
            "groups": groups,
            "lost_s": timed.machine.lost_s,
            "busiest": timed.machine.busiest,
        },
    )


def read_ratios(path: Path | str) -> tuple[Structure, Ratios]:
    """Return the structure of the model itself, and the ratio of each measured structure to it.

    Raises ArtifactError where the file is not what `measure_structures` wrote.
    """
    document = read_artifact(path, Table)
    parent = structure_from(document["parent"])
    ratios = {parent: 1.0}
    try:
        for group in document["groups"]:
            rounds = rounds_that_count(group["rounds"])
            for number, one in enumerate(group["structures"][1:], start=1):
                ratios[structure_from(one)] = ratio(rounds, number)
    except (ArithmeticError, LookupError, ValueError) as error:
        raise ArtifactError(f"{path}: {in_one_line(error)}; delete it and run again") from error
    return parent, ratios


class Form(TypedDict):
    """A `Structure` as JSON."""

    depths: list[int]
    width: int | None
    heads: NotRequired[int | None]


class TimedRound(TypedDict):
    """A round, see `tightrope.records.record`."""

    blocks_s: list[list[float]]
    foreign_cores: float


class Group(TypedDict):
    """Structures that were measured in the same rounds, the parent first."""

    structures: list[Form]
    rounds: Annotated[list[TimedRound], Meta(min_length=1)]


class Table(TypedDict):
    """What `measure_structures` writes, as far as it is read."""

    parent: Form
    groups: list[Group]


def structure_from(document: dict[str, Any]) -> Structure:
    """Return the structure of a `Structure.document`."""
    return Structure(tuple(document["depths"]), document["width"], document.get("heads"))


def rounds_that_count(rounds: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the undisturbed rounds, or where these are too few all of them, which is printed.

    They choose a structure and are no result; on a machine that is never quiet there would be none.
    """
    quiet = undisturbed_rounds(rounds)
    if len(quiet) >= FEWEST_ROUNDS:
        return quiet
    print(f"{len(rounds) - len(quiet)} of {len(rounds)} rounds were disturbed by other load")
    return [*rounds]


def ratio(rounds: Sequence[dict[str, Any]], engine: int) -> float:
    """Return the seconds per call of an engine over those of the first."""
    return time_ratio(blocks_of(rounds, engine), blocks_of(rounds, 0)).value


def settings_of(job: Any) -> TimingSettings:
    """Return the settings of a job, see `tightrope.jobs.job.current_job`.

    Raises TightropeError where this machine does not match the host key of the job.
    """
    engine = job.params.engine
    return TimingSettings(
        shapes=[engine["shape"]],
        plan=engine,
        quiet_seconds=job.resources.quiet_seconds,
        max_sequence=job.params.max_sequence,
        execution=Execution.of(job),
        terminal=job.terminal,
    )
