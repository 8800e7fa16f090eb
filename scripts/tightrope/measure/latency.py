"""Measure the latency of a variant paired with its baseline on the same machine."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from tightrope.artifacts.content import read_artifact
from tightrope.artifacts.files import sha256
from tightrope.artifacts.manifest import classes_of, open_manifest
from tightrope.artifacts.manifest_types import Audited, EngineManifest
from tightrope.artifacts.paths import Artifacts
from tightrope.engines.load import load_engine
from tightrope.errors import ArtifactError, WorkFailed
from tightrope.inputs.arrays import Arrays
from tightrope.inputs.timing_batches import timing_batches
from tightrope.jobs.child import Limits, failure, set_failure
from tightrope.machine.cores import pinned_processors
from tightrope.machine.quiet import QuietMachine
from tightrope.measure.comparison import compare_loads
from tightrope.measure.fixed_workload import reference_workload
from tightrope.measure.logits import check_logits
from tightrope.measure.run import facts_of_run
from tightrope.measure.settings import Shape, TimingSettings
from tightrope.measure.timed_engine import TimedEngine
from tightrope.records.latency import LatencyRecord
from tightrope.variants import parse

BASELINE = "baseline "


def measure_latency(
    artifacts: Artifacts,
    baseline: Path | str,
    target: Path | str,
    settings: TimingSettings,
    *,
    model: str,
    variant: str,
    audit: Path | str | None = None,
) -> None:
    """Write the LatencyRecord of `variant`, also if it cannot be measured.

    `baseline` is the engine.json of an engine of the same model, or of a model with the same inputs
    and classes. For the baseline itself it is its own engine.json. The baseline, and a variant
    whose baseline fails, are measured alone. A variant whose `audit` is collapsed or failed is not
    timed. A transient failure raises TightropeError unless this is the last attempt.
    """
    execution = settings.execution
    record = LatencyRecord(
        **facts_of_run(
            artifacts.engine, artifacts.checkpoint, execution, model=model, variant=variant
        ),
        threads=execution.threads,
        plan=settings.plan,
        processors=pinned_processors(execution.threads),
    )
    record.reason = why_not_timed(artifacts.engine, audit)
    if record.reason is not None:
        record.status = "failed"
        return record.write(target)
    beside = open_manifest(baseline, EngineManifest)
    if beside["status"] != "ok":
        record.baseline_failed = f"not built: {beside['reason']}"
    elif artifacts.engine != Path(baseline):
        record.baseline = beside["variant"]
    time_engines(record, artifacts, Path(baseline), settings)
    record.write(target)


def why_not_timed(engine: Path, audit: Path | str | None) -> str | None:
    """Return why an engine is not timed: it was not built, or failed its audit; else None.

    Raises ArtifactError for the audit of another engine.
    """
    built = open_manifest(engine, EngineManifest)
    if built["status"] != "ok":
        return f"not built: {built['reason']}"
    if audit is None:
        return None
    audited = read_artifact(audit, Audited)
    if audited.get("engine_sha256") != sha256(engine):
        raise ArtifactError(
            f"{audit}: the audit of another engine than {engine}; delete it and run again"
        )
    return None if audited["status"] == "ok" else str(audited.get("reason"))


def time_engines(
    record: LatencyRecord, artifacts: Artifacts, baseline: Path, settings: TimingSettings
) -> None:
    """Fill in `record` from the measurement, or from its failure."""
    limits = settings.execution.limits
    batches = timing_batches(
        artifacts.checkpoint, artifacts.data, settings.shapes, max_sequence=settings.max_sequence
    )
    machine = QuietMachine(record.processors, settings.quiet_seconds, settings.terminal)
    before = reference_workload(record.processors)
    try:
        paired = partial(
            measure_side_by_side,
            record,
            shapes=settings.shapes,
            batches=batches,
            check=partial(check_logits, classes=classes_of(artifacts.checkpoint)),
            limits=limits,
            machine=machine,
            streams=settings.streams,
        )
        measure(record, [artifacts.engine, baseline], paired, limits)
    except WorkFailed as error:
        record.shapes = []
        set_failure(record, error, record.variant, limits)
    record.lost_s, record.busiest = machine.lost_s, machine.busiest
    record.reference = {"before": before, "after": reference_workload(record.processors)}


def measure(
    record: LatencyRecord, engines: list[Path], paired: Callable[[list[Path]], None], limits: Limits
) -> None:
    """Fill in `record` paired with the baseline, or alone without a baseline or if that fails.

    `engines` are the variant's and the baseline's; `paired` fills in the record from its argument.
    """
    if record.baseline is None:
        return paired(engines[:1])
    try:
        paired(engines)
    except WorkFailed as error:
        if error.role != BASELINE:
            raise
        failure(error, record.variant, limits)
        record.baseline, record.baseline_failed = None, error.reason
        paired(engines[:1])


def measure_side_by_side(
    record: LatencyRecord,
    engines: list[Path],
    *,
    shapes: list[Shape],
    batches: list[Arrays],
    check: Any,
    limits: Limits,
    machine: QuietMachine,
    streams: Sequence[int],
) -> None:
    """Fill in `record` for all shapes, one process per engine and load.

    The engines share the memory limit of the job.
    """
    limits = replace(limits, memory_bytes=limits.memory_bytes / len(engines))
    timed = {}
    device = parse(record.variant).device
    for path, role in zip(engines, ("", BASELINE), strict=False):
        load = partial(load_engine, path, threads=record.threads)
        timed[role] = TimedEngine(load, batches, record.processors, check, device=device)
    compared, facts = compare_loads(timed, record.plan, record.threads, limits, machine, streams)
    for name, value in facts.items():
        setattr(record, name, value)
    record.shapes = [{**shape, **one} for shape, one in zip(shapes, compared, strict=True)]
    record.first_call_s = record.shapes[0]["first_call_s"]
