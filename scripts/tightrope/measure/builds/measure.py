"""Build the engine of a variant several times from the same files, and compare the builds."""

from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from tightrope.artifacts.manifest import open_manifest
from tightrope.artifacts.manifest_types import EngineManifest
from tightrope.artifacts.paths import Artifacts
from tightrope.engines.build import build_engine
from tightrope.errors import WorkFailed
from tightrope.inputs.timing_batches import timing_batches
from tightrope.jobs.child import set_failure
from tightrope.jobs.execution import Execution
from tightrope.jobs.progress import ProgressBar
from tightrope.machine.cores import pinned_processors
from tightrope.machine.quiet import QuietMachine
from tightrope.measure.engine_worker import engine_worker
from tightrope.measure.latency import why_not_timed
from tightrope.measure.rounds import measure_rounds, start, warm_up
from tightrope.measure.run import facts_of_run
from tightrope.measure.settings import TimingSettings
from tightrope.records.builds import BuildsRecord


def measure_builds(
    artifacts: Artifacts,
    sources: Mapping[str, str],
    target: Path | str,
    settings: TimingSettings,
    *,
    model: str,
    variant: str,
) -> None:
    """Write the BuildsRecord of `variant` at the only shape of `settings`, also if a build fails.

    `sources` are the inputs of a build by their names in its rule; `settings.plan` holds `count`,
    the number of builds, and their `options`. A transient failure raises TightropeError unless this
    is the last attempt.
    """
    execution = settings.execution
    (shape,) = settings.shapes
    record = BuildsRecord(
        **facts_of_run(
            artifacts.engine, artifacts.checkpoint, execution, model=model, variant=variant
        ),
        threads=execution.threads,
        processors=pinned_processors(execution.threads),
        shape=shape,
        options=settings.plan["options"],
    )
    record.reason = why_not_timed(artifacts.engine, None)
    if record.reason is not None:
        record.status = "failed"
    else:
        work = artifacts.engine.parents[2] / "work"
        work.mkdir(parents=True, exist_ok=True)
        with TemporaryDirectory(prefix="builds.", dir=work) as folder:
            compare_builds(record, Path(folder), artifacts, sources, settings)
    record.write(target)


def compare_builds(
    record: BuildsRecord,
    folder: Path,
    artifacts: Artifacts,
    sources: Mapping[str, str],
    settings: TimingSettings,
) -> None:
    """Fill in `record` from builds in `folder`, or from the first failure."""
    machine = QuietMachine(record.processors, settings.quiet_seconds, settings.terminal)
    try:
        manifests = built(record, folder, sources, settings)
        time_builds(record, manifests, artifacts, settings, machine)
    except WorkFailed as error:
        record.rounds = []
        set_failure(record, error, record.variant, settings.execution.limits)
    record.lost_s, record.busiest = machine.lost_s, machine.busiest


def built(
    record: BuildsRecord, folder: Path, sources: Mapping[str, str], settings: TimingSettings
) -> list[Path]:
    """Build the engine again and again; return the manifests, with facts of each in `record`.

    Each is in a folder of its own with the layout of a model's, because TensorRT keeps its times of
    kernels beside the engines: no build may know those of another.
    """
    samples = {name: path for name, path in sources.items() if name != "source"}
    files, manifests = [], []
    with ProgressBar("building", settings.plan["count"]) as bar:
        for number in range(settings.plan["count"]):
            target = folder / str(number) / "engines" / record.variant / "engine.json"
            build_engine(
                record.variant,
                sources["source"],
                target,
                execution=settings.execution,
                options=record.options,
                samples=samples,
            )
            manifest = open_manifest(target, EngineManifest)
            if manifest["status"] != "ok":
                raise WorkFailed(f"build {number + 1}: {manifest['reason']}", transient=False)
            size = sum(file["size_bytes"] for file in manifest["files"].values())
            record.builds.append({"build_s": manifest["build_s"], "size_bytes": size})
            files.append(manifest["files"])
            manifests.append(target)
            bar.add()
    record.identical = all(one == files[0] for one in files)
    return manifests


def time_builds(
    record: BuildsRecord,
    manifests: list[Path],
    artifacts: Artifacts,
    settings: TimingSettings,
    machine: QuietMachine,
) -> None:
    """Add the rounds of all builds, each in a process; they share the memory limit of the job."""
    batches = timing_batches(
        artifacts.checkpoint, artifacts.data, settings.shapes, max_sequence=settings.max_sequence
    )
    inputs = artifacts.checkpoint, batches, settings.execution.limits
    threads, share = record.threads, len(manifests)
    with ExitStack() as stack:
        workers = [
            stack.enter_context(engine_worker(path, *inputs, threads=threads, share=share))
            for path in manifests
        ]
        start(workers, machine)
        warm_up(workers)
        record.rounds = measure_rounds(workers, machine, "timing builds")


def settings_of(job: Any) -> TimingSettings:
    """Return the settings of a job, see `tightrope.jobs.job.current_job`."""
    return TimingSettings(
        shapes=[job.params.shape],
        plan={**job.params.builds, "options": job.params.options},
        quiet_seconds=job.resources.quiet_seconds,
        max_sequence=job.params.max_sequence,
        execution=Execution.of(job),
        terminal=job.terminal,
    )
