"""Measure the latency of smaller structures of a model, side by side with the model itself."""

import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any

import numpy as np
from msgspec import Meta, Struct, convert, to_builtins
from msgspec.structs import replace

from tightrope.artifacts.content import read_artifact, write_artifact
from tightrope.artifacts.files import sha256
from tightrope.artifacts.manifest import open_manifest
from tightrope.artifacts.manifest_types import EngineManifest
from tightrope.engines.build import build_engine
from tightrope.errors import ArtifactError, TightropeError, WorkFailed, in_one_line
from tightrope.inputs.arrays import Arrays
from tightrope.jobs.child import run_or_stop
from tightrope.machine.cores import pinned_processors
from tightrope.machine.interference import QuietMachine
from tightrope.measure.rounds import rounds_of
from tightrope.measure.run import TimingSettings, batches_of
from tightrope.measure.timed_engine import timed_engine
from tightrope.model.structures import (
    Costs,
    Structure,
    Table,
    some_widths,
    width_step,
    widths_up_to,
)
from tightrope.records.record import FEWEST_ROUNDS, Round, blocks_of, time_ratio, undisturbed_rounds

# seconds of a call over those of the parent's
Ratios = Mapping[Structure, float]
# a stage is measured in the middle too where it has more blocks than this
FEW_BLOCKS = 4
# widths are measured at these parts of the present one, and at the smallest
TIMED_PARTS = 2
SCHEMA = 1
# structures measured in the same rounds, besides the model itself
GROUP = 3


def points(parent: Structure, *, fewer_heads: bool = False) -> list[Structure]:
    """Return the structures to measure, the parent first: one stage at a time is shortened.

    Depths are one block, half and all; widths the smallest, half and all; and with `fewer_heads`,
    at the parent's depth and width, attention heads one, half and all.
    """
    found = [parent]
    for width in widths_to_measure(parent):
        for stage, blocks in enumerate(parent.depths):
            middle = [(blocks + 1) // 2] if blocks > FEW_BLOCKS else []
            for depth in (1, *middle, blocks):
                depths = (*parent.depths[:stage], depth, *parent.depths[stage + 1 :])
                found.append(Structure(depths, width, parent.heads))
    if fewer_heads and parent.heads is not None:
        fewer = some_widths(parent.heads, TIMED_PARTS, 1)
        found += [Structure(parent.depths, parent.width, heads) for heads in fewer]
    return list(dict.fromkeys(found))


def widths_to_measure(parent: Structure) -> list[int | None]:
    """Return some widths, or [None] of a model without widths."""
    if parent.width is None:
        return [None]
    return [*some_widths(parent.width, TIMED_PARTS, width_step(len(parent.depths), parent.width))]


def table_of(ratios: Ratios, parent: Structure) -> Table:
    """Return the costs of all structures, as shares of the parent's seconds per call.

    Linear between the measured depths, widths and heads; stages add up, and so do the heads: fewer
    of them save the same in each layer, whatever its width.
    """
    saved = saved_by_heads(ratios, parent)
    return {
        (width, heads): Costs(
            rest,
            [
                [cost - share * depth / len(own) for depth, cost in enumerate(own, start=1)]
                for own in blocks
            ],
        )
        for width, (rest, blocks) in costs_by_width(ratios, parent).items()
        for heads, share in saved.items()
    }


def saved_by_heads(ratios: Ratios, parent: Structure) -> dict[int | None, float]:
    """Return the share of the parent's time that each number of heads saves in all its layers.

    From the fewest heads that were measured.
    """
    if parent.heads is None:
        return {None: 0.0}
    known = sorted(
        (one.heads, 1 - ratio)
        for one, ratio in ratios.items()
        if one.heads is not None and replace(one, heads=parent.heads) == parent
    )
    heads, shares = zip(*known, strict=True)
    return {one: float(np.interp(one, heads, shares)) for one in range(heads[0], parent.heads + 1)}


def costs_by_width(ratios: Ratios, parent: Structure) -> dict[int | None, Costs]:
    """Return the costs of all widths with the heads of the parent; `rest` is that of all blocks."""
    measured = widths_to_measure(parent)
    rows = np.stack([costs_at(ratios, parent, width) for width in measured])
    known = [width or 0 for width in measured]  # a single one without widths
    found: dict[int | None, Costs] = {}
    for width in widths_up_to(parent.width, width_step(len(parent.depths), parent.width)):
        row = np.array([np.interp(width or 0, known, column) for column in rows.T])
        stages = np.split(row - row[-1], np.cumsum(parent.depths)[:-1])
        found[width] = Costs(float(row[-1]), [stage.tolist() for stage in stages])
    return found


def costs_at(ratios: Ratios, parent: Structure, width: int | None) -> np.ndarray:
    """Return the ratio of each depth of each stage at a measured width, the stages in a row."""
    found: list[np.ndarray] = []
    for stage, blocks in enumerate(parent.depths):
        others = [*parent.depths[:stage], *parent.depths[stage + 1 :]]
        known = sorted(
            (one.depths[stage], ratio)
            for one, ratio in ratios.items()
            if (one.width, one.heads) == (width, parent.heads)
            and [*one.depths[:stage], *one.depths[stage + 1 :]] == others
        )
        depths, values = zip(*known, strict=True)
        found.append(np.interp(np.arange(1, blocks + 1), depths, values))
    return np.concatenate(found)


@dataclass(frozen=True)
class TimedStructures:
    """Times structures of the model with manifest `checkpoint` on examples of the split `data`.

    `settings.shapes` is the only shape; its `plan` holds `variant`, the engine's `options` and the
    `source` that it is built from, "checkpoint" or "onnx". Engines are built in `folder`, that of
    the `parent`, which is the model itself, once.
    """

    checkpoint: Path
    data: Path
    settings: TimingSettings
    machine: QuietMachine
    parent: Structure
    folder: Path

    def rounds(self, structures: Sequence[Structure]) -> list[Round]:
        """Return rounds of the parent and then these structures.

        Raises TightropeError where one cannot be built or run.
        """
        threads, limits = self.settings.execution.threads, self.settings.execution.limits
        try:
            timed = [
                timed_engine(one, self.checkpoint, self.batches, threads=threads)
                for one in (self.parent_engine, *self.built(structures, "smaller"))
            ]
            (rounds,) = rounds_of(timed, limits, self.machine, "structures")
        except WorkFailed as error:
            raise TightropeError(f"structures not measured: {error.reason}") from error
        finally:
            shutil.rmtree(self.folder / "smaller", ignore_errors=True)
        return rounds

    @cached_property
    def parent_engine(self) -> Path:
        """Return the manifest of the engine of the model itself."""
        return self.built([self.parent], "parent")[0]

    def built(self, structures: Sequence[Structure], name: str) -> list[Path]:
        """Build the engines of structures in folder `name`; return their manifests."""
        plan, execution, folder = self.settings.plan, self.settings.execution, self.folder / name
        print(f"building {', '.join(map(str, structures))}")

        def write() -> list[str]:
            from tightrope.measure.structure_models import write_sources

            own = {"kind": plan["source"], "threads": execution.threads}
            return write_sources(self.checkpoint, self.data, structures, folder, **own)

        manifests = []
        for number, source in enumerate(run_or_stop("structures", write, limits=execution.limits)):
            target = folder / str(number) / "engines" / plan["variant"] / "engine.json"
            options = plan["options"]
            build_engine(plan["variant"], source, target, execution=execution, options=options)
            manifest = open_manifest(target, EngineManifest)
            if manifest["status"] != "ok":
                raise WorkFailed(f"{plan['variant']}: {manifest['reason']}", transient=False)
            manifests.append(target)
        return manifests

    def facts(self, host: str) -> dict[str, Any]:
        """Return what a file holds of where and how this was timed."""
        execution = self.settings.execution
        return {
            "host": host,
            "threads": execution.threads,
            "processors": self.machine.processors,
            "libraries": execution.libraries,
        }

    @cached_property
    def batches(self) -> list[Arrays]:
        """Return the only batch of inputs."""
        return batches_of(self.settings, self.checkpoint, self.data)


@contextmanager
def timed_structures(
    checkpoint: Path, data: Path, settings: TimingSettings, parent: Structure
) -> Iterator[TimedStructures]:
    """Yield TimedStructures with a folder that is deleted at the end."""
    machine = settings.machine(pinned_processors(settings.execution.threads))
    work = checkpoint.parents[1] / "work"
    work.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(prefix="structures.", dir=work) as folder:
        yield TimedStructures(checkpoint, data, settings, machine, parent, Path(folder))


def structure_in(checkpoint: Path) -> Structure:
    """Return the structure of a checkpoint; raise TightropeError for a model of another form."""
    # it imports PyTorch, which the process that measures does not need
    from tightrope.measure.structure_models import structure_of

    return structure_of(checkpoint)


def measure_structures(
    checkpoint: Path, data: Path, target: Path | str, settings: TimingSettings, *, host: str
) -> None:
    """Write the rounds of the structures of `points`, the raw samples of the latency table.

    Each of `groups` has `structures`, the model itself first, and `rounds` with a block of each.
    The engines are built from the model with manifest `checkpoint` and deleted. Raises
    TightropeError where one cannot be built or run, and for a model whose blocks are not found.
    """
    limits = settings.execution.limits
    parent: Structure = run_or_stop("structures", structure_in, checkpoint, limits=limits)
    heads = settings.plan.get("heads", False)
    smaller, groups = points(parent, fewer_heads=heads)[1:], []
    with timed_structures(checkpoint, data, settings, parent) as timed:
        for first in range(0, len(smaller), GROUP):
            group = smaller[first : first + GROUP]
            groups.append(Group(structures=[parent, *group], rounds=timed.rounds(group)))
    write_artifact(
        target,
        {
            "schema": SCHEMA,
            "variant": settings.plan["variant"],
            "shape": settings.shapes[0],
            **timed.facts(host),
            "checkpoint_sha256": sha256(checkpoint),
            **to_builtins(LatencyTable(parent=parent, groups=groups)),
            "lost_s": timed.machine.lost_s,
            "busiest": timed.machine.busiest,
        },
    )


def read_ratios(path: Path | str) -> tuple[Structure, Ratios]:
    """Return the structure of the model itself, and the ratio of each measured structure to it.

    Raises ArtifactError where the file is not what `measure_structures` wrote.
    """
    table = convert(read_artifact(path, LatencyTable), LatencyTable)
    ratios = {table.parent: 1.0}
    try:
        for group in table.groups:
            rounds = rounds_that_count(group.rounds)
            for number, one in enumerate(group.structures[1:], start=1):
                ratios[one] = ratio(rounds, number)
    except (ArithmeticError, LookupError, ValueError) as error:
        raise ArtifactError(f"{path}: {in_one_line(error)}; delete it and run again") from error
    return table.parent, ratios


class Group(Struct, kw_only=True):
    """Structures that were measured in the same rounds, the parent first."""

    structures: list[Structure]
    rounds: Annotated[list[Round], Meta(min_length=1)]


class LatencyTable(Struct, kw_only=True):
    """What `measure_structures` writes, as far as it is read."""

    parent: Structure
    groups: list[Group]


def rounds_that_count(rounds: Sequence[Round]) -> list[Round]:
    """Return the undisturbed rounds, or where these are too few all of them, which is printed.

    They choose a structure and are no result; on a machine that is never quiet there would be none.
    """
    quiet = undisturbed_rounds(rounds)
    if len(quiet) >= FEWEST_ROUNDS:
        return quiet
    print(f"{len(rounds) - len(quiet)} of {len(rounds)} rounds were disturbed by other load")
    return [*rounds]


def ratio(rounds: Sequence[Round], engine: int) -> float:
    """Return the seconds per call of an engine over those of the first."""
    return time_ratio(blocks_of(rounds, engine), blocks_of(rounds, 0)).value
