"""Engines of smaller structures of a trained model, which are measured and then deleted."""

import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from tightrope.artifacts.manifest import open_manifest
from tightrope.artifacts.manifest_types import EngineManifest
from tightrope.engines.build import build_engine
from tightrope.errors import TightropeError, WorkFailed
from tightrope.inputs.arrays import Arrays
from tightrope.inputs.timing_batches import timing_batches
from tightrope.jobs.child import Child, Limits, supervised
from tightrope.machine.cores import pinned_processors
from tightrope.machine.quiet import QuietMachine
from tightrope.measure.engine_worker import engine_worker
from tightrope.measure.rounds import measure_rounds, start, warm_up
from tightrope.measure.settings import TimingSettings
from tightrope.model.structures import Structure


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

    def rounds(self, structures: Sequence[Structure]) -> list[dict[str, Any]]:
        """Return rounds of the parent and then these structures, see `tightrope.records.record`.

        Raises TightropeError where one cannot be built or run.
        """
        try:
            with ExitStack() as stack:
                engines = [self.parent_engine, *self.built(structures, "smaller")]
                stack.callback(shutil.rmtree, self.folder / "smaller", ignore_errors=True)
                workers = [stack.enter_context(self.worker(one, len(engines))) for one in engines]
                start(workers, self.machine)
                warm_up(workers)
                return measure_rounds(workers, self.machine, "structures")
        except WorkFailed as error:
            raise TightropeError(f"structures not measured: {error.reason}") from error

    @cached_property
    def parent_engine(self) -> Path:
        """Return the manifest of the engine of the model itself."""
        return self.built([self.parent], "parent")[0]

    def built(self, structures: Sequence[Structure], name: str) -> list[Path]:
        """Build the engines of structures in folder `name`; return their manifests."""
        plan, execution = self.settings.plan, self.settings.execution
        print(f"building {', '.join(map(str, structures))}")
        write = partial(written, self.checkpoint, self.data, structures, self.folder / name)
        write = partial(write, kind=plan["source"], threads=execution.threads)
        manifests = []
        for number, source in enumerate(in_child(write, execution.limits)):
            target = self.folder / name / str(number) / "engines" / plan["variant"] / "engine.json"
            options = plan["options"]
            build_engine(plan["variant"], source, target, execution=execution, options=options)
            manifest = open_manifest(target, EngineManifest)
            if manifest["status"] != "ok":
                raise WorkFailed(f"{plan['variant']}: {manifest['reason']}", transient=False)
            manifests.append(target)
        return manifests

    def worker(self, engine: Path, count: int) -> Child:
        """Return the child that times an engine; `count` share the memory limit of the job."""
        threads, limits = self.settings.execution.threads, self.settings.execution.limits
        inputs = self.checkpoint, self.batches, limits
        return engine_worker(engine, *inputs, threads=threads, share=count)

    @cached_property
    def batches(self) -> list[Arrays]:
        """Return the only batch of inputs."""
        settings = self.settings
        return timing_batches(
            self.checkpoint, self.data, settings.shapes, max_sequence=settings.max_sequence
        )


@contextmanager
def timed_structures(
    checkpoint: Path, data: Path, settings: TimingSettings, parent: Structure
) -> Iterator[TimedStructures]:
    """Yield TimedStructures with a folder that is deleted at the end."""
    processors = pinned_processors(settings.execution.threads)
    machine = QuietMachine(processors, settings.quiet_seconds, settings.terminal)
    work = checkpoint.parents[1] / "work"
    work.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(prefix="structures.", dir=work) as folder:
        yield TimedStructures(checkpoint, data, settings, machine, parent, Path(folder))


def in_child(work: Callable[[], Any], limits: Limits) -> Any:
    """Return what `work` returns in a child; raise its TightropeError, or one of its failure."""
    try:
        value, error = supervised(partial(caught, work), limits=limits)
    except WorkFailed as failed:
        raise TightropeError(failed.reason) from failed
    if error is not None:
        raise error
    return value


def caught(work: Callable[[], Any]) -> tuple[Any, TightropeError | None]:
    """Return what `work` returns, or its expected error as a second value."""
    try:
        return work(), None
    except TightropeError as error:
        return None, error


# both import PyTorch, which the process that measures does not need
def structure_in(checkpoint: Path) -> Structure:
    """Return the structure of a checkpoint; raise TightropeError for a model of another form."""
    from tightrope.measure.structures.source import structure_of

    return structure_of(checkpoint)


def written(*arguments: Any, **options: Any) -> list[str]:
    """Return what `source.write_sources` does."""
    from tightrope.measure.structures.source import write_sources

    return write_sources(*arguments, **options)
