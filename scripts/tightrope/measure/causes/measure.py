"""Build a profiled variant again without each cause that a setting removes, and time both."""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from tightrope.artifacts.manifest import open_manifest, read_manifest
from tightrope.artifacts.manifest_types import EngineManifest
from tightrope.artifacts.paths import Artifacts
from tightrope.engines.build import build_engine
from tightrope.errors import WorkFailed
from tightrope.inputs.arrays import Arrays
from tightrope.inputs.timing_batches import timing_batches
from tightrope.jobs.child import Child, failure
from tightrope.jobs.execution import Execution
from tightrope.machine.cores import physical_cores, pinned_processors
from tightrope.machine.quiet import QuietMachine
from tightrope.measure.causes.predict import Cause, Change, Profiled, causes
from tightrope.measure.engine_worker import engine_worker
from tightrope.measure.rounds import measure_rounds, start, warm_up
from tightrope.measure.run import facts_of_run
from tightrope.measure.settings import TimingSettings
from tightrope.records.profile import PREFIX, CausesRecord, ProfileRecord
from tightrope.variants import parse

SIZES = ("batch", "sequence", "tokens", "height", "width")
# an entry of `causes` of the record, the index of its shape, and the engine without the cause
Entry = tuple[dict[str, Any], int, Change]


def sources_of(inputs: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Return the inputs of a build among those of a job, by their names in the build's rule."""
    return {name.removeprefix(PREFIX): path for name, path in inputs if name.startswith(PREFIX)}


def verify_causes(
    artifacts: Artifacts,
    sources: Mapping[str, str],
    profile: Path | str,
    target: Path | str,
    settings: TimingSettings,
    *,
    model: str,
    variant: str,
) -> None:
    """Write the CausesRecord of `variant`, whose ProfileRecord is `profile`.

    `sources` are the inputs of a build by their names in its rule. A variant that could not be
    profiled is a failed record; without causes the record is empty. A transient failure raises
    TightropeError unless this is the last attempt.
    """
    execution = settings.execution
    profiled = ProfileRecord.read(profile)
    cores = max(execution.threads, physical_cores())
    record = CausesRecord(
        **facts_of_run(
            artifacts.engine, artifacts.checkpoint, execution, model=model, variant=variant
        ),
        threads=execution.threads,
        processors=pinned_processors(cores),
    )
    record.reason = profiled.reason or profiled.unprofiled
    if record.reason is not None:
        record.status = "failed"
    else:
        machine = QuietMachine(record.processors, settings.quiet_seconds, settings.terminal)
        entries = entries_of(profiled, artifacts.engine, cores)
        record.causes = [entry for entry, *_ in entries]
        Pairs(artifacts, sources, settings, machine).fill(entries)
        record.lost_s, record.busiest = machine.lost_s, machine.busiest
    record.write(target)


def entries_of(profiled: ProfileRecord, engine: Path, cores: int) -> list[Entry]:
    """Return the entries of all causes at all shapes, without what is measured."""
    options = read_manifest(engine, EngineManifest)["options"]
    found: list[Entry] = []
    for index, call in enumerate(profiled.shapes):
        variant, peaks = parse(profiled.variant), profiled.peaks
        sizes = {name: call[name] for name in SIZES if name in call}
        for one in causes(Profiled(call, variant, options, profiled.threads, cores, peaks)):
            found.append((entry_of(one, sizes, call["call_s"]), index, one.change))
    return found


def entry_of(cause: Cause, sizes: dict[str, int], profiled_s: float) -> dict[str, Any]:
    """Return the entry of a cause at a shape before it is measured."""
    words = {"cause": cause.cause, "setting": cause.setting}
    predicted = {"low": cause.low, "high": cause.high, "profiled_s": profiled_s}
    return {**sizes, **words, **predicted, "reason": None, "rounds": []}


class Pairs:
    """A variant, beside an engine without a cause of its time that is built and deleted."""

    def __init__(
        self,
        artifacts: Artifacts,
        sources: Mapping[str, str],
        settings: TimingSettings,
        machine: QuietMachine,
    ) -> None:
        self.artifacts, self.sources = artifacts, sources
        self.settings, self.machine = settings, machine
        self.batches: list[Arrays] = timing_batches(
            artifacts.checkpoint,
            artifacts.data,
            settings.shapes,
            max_sequence=settings.max_sequence,
        )

    def fill(self, entries: Sequence[Entry]) -> None:
        """Set `rounds` or `reason` of each entry; engines that are alike are built once."""
        changes = []
        for _, _, change in entries:
            if change not in changes:
                changes.append(change)
        for change in changes:
            alike = [(entry, index) for entry, index, other in entries if other == change]
            try:
                self.measure(change, alike)
            except WorkFailed as error:
                reason = failure(error, change.variant, self.settings.execution.limits)["reason"]
                for entry, _ in alike:
                    entry["reason"] = None if entry["rounds"] else reason

    def measure(self, change: Change, alike: Sequence[tuple[dict[str, Any], int]]) -> None:
        """Build the engine of `change` and set `rounds` of each entry, with its shape's index."""
        work = self.artifacts.engine.parents[2] / "work"
        work.mkdir(parents=True, exist_ok=True)
        with TemporaryDirectory(prefix="causes.", dir=work) as folder, ExitStack() as stack:
            changed = self.built(change, Path(folder))
            own = self.settings.execution.threads
            workers = [
                stack.enter_context(self.worker(self.artifacts.engine, own)),
                stack.enter_context(self.worker(changed, change.threads)),
            ]
            start(workers, self.machine)
            for entry, index in alike:
                warm_up(workers, index=index)
                entry["rounds"] = measure_rounds(workers, self.machine, "causes", index=index)

    def built(self, change: Change, folder: Path) -> Path:
        """Build the engine of `change` in `folder`; return its manifest, raise WorkFailed."""
        target = folder / "engines" / change.variant / "engine.json"
        sources = dict(self.sources)
        if parse(change.variant).quantized_as is not None:
            sources = {"source": str(self.artifacts.engine)}
        build_engine(
            change.variant,
            sources["source"],
            target,
            execution=replace(self.settings.execution, threads=change.threads),
            options=dict(change.options),
            samples={name: path for name, path in sources.items() if name != "source"},
        )
        manifest = open_manifest(target, EngineManifest)
        if manifest["status"] != "ok":
            raise WorkFailed(f"not built: {manifest['reason']}", transient=False)
        return target

    def worker(self, engine: Path, threads: int) -> Child:
        """Return the child that times an engine; two share the memory limit of the job."""
        inputs = self.artifacts.checkpoint, self.batches, self.settings.execution.limits
        return engine_worker(engine, *inputs, threads=threads, share=2)


def settings_of(job: Any) -> TimingSettings:
    """Return the settings of a job, see `tightrope.jobs.job.current_job`."""
    return TimingSettings(
        shapes=job.params.shapes,
        plan={},
        quiet_seconds=job.resources.quiet_seconds,
        max_sequence=job.params.max_sequence,
        execution=Execution.of(job),
        terminal=job.terminal,
    )
