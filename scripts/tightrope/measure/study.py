"""Measure a study of a variant: hand it the engine, keep its calls or why there are none."""

import os
import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from importlib import import_module
from pathlib import Path
from typing import Any

import msgspec

from tightrope.artifacts.files import storage_errors
from tightrope.artifacts.manifest import Artifacts, classes_of, read_manifest
from tightrope.artifacts.manifest_types import CheckpointManifest
from tightrope.engines.load import load_engine
from tightrope.errors import WorkFailed
from tightrope.inputs.arrays import Arrays
from tightrope.inputs.encode import load_encoder, read_split
from tightrope.inputs.texts import require_sequence
from tightrope.jobs.child import Child, set_failure
from tightrope.machine.cores import let_threads_spin, pinned_processors
from tightrope.machine.interference import QuietMachine
from tightrope.measure.accuracy import answers
from tightrope.measure.rounds import Running
from tightrope.measure.run import TimingSettings, batches_of, can_be_timed, facts_of_run
from tightrope.measure.timed_engine import timed_engine
from tightrope.signature import IMAGE
from tightrope.studies.study import Bench, Shape, StudyRecord


@dataclass
class EngineBench(Bench):
    """The `Bench` of a study: the engine in `artifacts`, in processes that share its limits."""

    artifacts: Artifacts
    settings: TimingSettings
    processors: list[int]
    machine: QuietMachine
    folder: Path = Path()
    shape: Shape = field(default_factory=dict)
    began: float = field(default_factory=time.monotonic)
    # of the last shapes
    inputs: tuple[Sequence[Shape], list[Arrays]] = ((), [])

    @property
    def threads(self) -> int:
        """Return the threads of the job."""
        return self.settings.execution.threads

    def size(self, sequence: int, key: str) -> Shape:
        """Return the size of each input, see `Bench`."""
        manifest = read_manifest(self.artifacts.checkpoint, CheckpointManifest)
        if manifest["task"] == IMAGE:
            return {"height": manifest["height"], "width": manifest["width"]}
        require_sequence(manifest["source"], manifest["max_sequence"], sequence, key=key)
        return {"sequence": sequence}

    @contextmanager
    def engines(
        self, shapes: Sequence[Shape], pins: Sequence[Sequence[int]] | None = None
    ) -> Iterator[list[Child]]:
        """Load engines, see `Bench`; they share the memory limit of the job."""
        # threads and processors; there may be fewer processors than threads
        ran = [(len(pin), [*pin]) for pin in pins or ()] or [(self.threads, self.processors)]
        limits = self.settings.execution.limits
        limits = replace(limits, memory_bytes=limits.memory_bytes / len(ran))
        files = self.artifacts.engine, self.artifacts.checkpoint
        if self.inputs[0] != shapes:
            settings = replace(self.settings, shapes=[*shapes])
            self.inputs = shapes, batches_of(settings, files[1], self.artifacts.data)
        engines = {
            str(number): timed_engine(*files, self.inputs[1], threads=threads, on=processors)
            for number, (threads, processors) in enumerate(ran)
        }
        running = Running(engines, limits, self.machine)
        with running.loaded(engines, self.began):
            yield [*running.workers.values()]

    @contextmanager
    def serving(self, server: Callable[..., Any]) -> Iterator[Child]:
        """Start a server of the engine, see `Bench`."""
        self.processors = self.machine.processors = sorted(os.sched_getaffinity(0))
        checkpoint, longest = self.artifacts.checkpoint, self.settings.max_sequence

        def load() -> tuple[Callable[[Arrays], Any], Sequence[Arrays]]:
            """Return the engine, with its outputs checked, and the examples; in the child."""
            rows = load_encoder(checkpoint, max_sequence=longest)(read_split(self.artifacts.data))
            classes = classes_of(checkpoint)
            let_threads_spin()
            run, _ = load_engine(self.artifacts.engine, threads=self.threads)
            return lambda inputs: answers(run(inputs), inputs, classes=classes), rows

        limits = self.settings.execution.limits
        with Child(server(load, longest), limits, began=self.began) as worker:
            yield worker


def measure_study(
    name: str, artifacts: Artifacts, target: Path | str, settings: TimingSettings
) -> None:
    """Write the StudyRecord of a variant, also if it cannot run; `settings.plan` are the study's.

    Its other files are in the folder with its name without `.json`; both are deleted first. A
    transient failure raises TightropeError unless this is the last attempt. Raises TightropeError
    for settings that the model does not take.
    """
    # by its name, so that another study makes nothing of this one stale
    study = import_module(f"tightrope.studies.{name}")
    execution = settings.execution
    processors = pinned_processors(execution.threads)
    record = StudyRecord(
        **facts_of_run(artifacts, execution),
        study=name,
        threads=execution.threads,
        processors=processors,
        settings=settings.plan,
    )
    asked = msgspec.convert({**settings.plan}, study.Settings)
    folder = Path(target).with_suffix("")
    with storage_errors(folder):
        Path(target).unlink(missing_ok=True)
        if folder.exists():
            shutil.rmtree(folder)
    bench = EngineBench(artifacts, settings, processors, settings.machine(processors), folder)
    if can_be_timed(record, artifacts.engine):
        try:
            for call in study.measure(bench, asked):
                record.calls.append(call)
        except WorkFailed as error:
            set_failure(record, error, record.variant, execution.limits)
        record.shape, record.spent_s = bench.shape, bench.spent_s
        record.processors = bench.processors
        record.lost_s, record.busiest = bench.machine.lost_s, bench.machine.busiest
    record.write(target)
