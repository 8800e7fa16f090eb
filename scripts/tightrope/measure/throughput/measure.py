"""Measure the throughput of a variant on this machine, by instances, threads and batch."""

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Self, TextIO

from tightrope.artifacts.manifest import classes_of, open_manifest, read_manifest
from tightrope.artifacts.manifest_types import CheckpointManifest, EngineManifest
from tightrope.artifacts.paths import Artifacts
from tightrope.engines.load import load_engine
from tightrope.inputs.texts import require_sequence
from tightrope.inputs.timing_batches import timing_batches
from tightrope.jobs.child import set_failure
from tightrope.jobs.execution import Execution
from tightrope.machine.cores import pinned_processors
from tightrope.machine.quiet import QuietMachine
from tightrope.measure.logits import check_logits
from tightrope.measure.run import facts_of_run
from tightrope.measure.throughput.sweep import Sweep
from tightrope.records.throughput import ThroughputRecord
from tightrope.signature import IMAGE


@dataclass(frozen=True, kw_only=True)
class ThroughputSettings:
    """How the throughput of an engine is measured.

    `plan` holds `batches`, `sequence` (of texts), `instances` and `threads` (a list, or `auto`, see
    `grid.divisions`), `p99_ms` (None without a bound), `seconds` of a point and `max_seconds` of
    all. Texts are cut at `max_sequence` tokens. Up to `quiet_seconds` may be lost to other load;
    messages about waiting go to `terminal`.
    """

    max_sequence: int
    plan: dict[str, Any]
    quiet_seconds: float
    execution: Execution
    terminal: TextIO

    @classmethod
    def of(cls, job: Any) -> Self:
        """Return the settings of a job, see `tightrope.jobs.job.current_job`.

        Raises TightropeError where this machine does not match the host key of the job.
        """
        return cls(
            max_sequence=job.params.max_sequence,
            plan=job.params.throughput,
            quiet_seconds=job.resources.quiet_seconds,
            execution=Execution.of(job),
            terminal=job.terminal,
        )


def measure_throughput(
    artifacts: Artifacts,
    target: Path | str,
    settings: ThroughputSettings,
    *,
    model: str,
    variant: str,
) -> None:
    """Write the ThroughputRecord of `variant`, also if it cannot run.

    It has failed where no point could be measured; a transient failure then raises TightropeError
    unless this is the last attempt. Raises TightropeError for more tokens than the model takes.
    """
    execution = settings.execution
    processors = pinned_processors(execution.threads)[: execution.threads]
    record = ThroughputRecord(
        **facts_of_run(
            artifacts.engine, artifacts.checkpoint, execution, model=model, variant=variant
        ),
        plan=settings.plan,
        processors=processors,
        cores=len(processors),
    )
    size = size_of(artifacts.checkpoint, settings.plan)
    record.sequence = size.get("sequence")
    record.height, record.width = size.get("height"), size.get("width")
    built = open_manifest(artifacts.engine, EngineManifest)
    if built["status"] != "ok":
        record.status, record.reason = "failed", f"not built: {built['reason']}"
    else:
        sweep(record, artifacts, settings, size)
    record.write(target)


def size_of(checkpoint: Path, plan: dict[str, Any]) -> dict[str, int]:
    """Return the size of each input: `sequence` of a text, `height` and `width` of an image.

    Raises TightropeError where the model takes fewer tokens.
    """
    manifest = read_manifest(checkpoint, CheckpointManifest)
    if manifest["task"] == IMAGE:
        return {"height": manifest["height"], "width": manifest["width"]}
    longest, sequence = manifest["max_sequence"], plan["sequence"]
    require_sequence(manifest["source"], longest, sequence, key="throughput.sequence")
    return {"sequence": sequence}


def sweep(
    record: ThroughputRecord,
    artifacts: Artifacts,
    settings: ThroughputSettings,
    size: dict[str, int],
) -> None:
    """Fill in `record` from the points, or from their failure where none was measured."""
    limits = settings.execution.limits
    shapes = [{"batch": batch, **size} for batch in settings.plan["batches"]]
    machine = QuietMachine(record.processors, settings.quiet_seconds, settings.terminal)
    measured = Sweep(
        load=partial(load_engine, artifacts.engine),
        inputs=timing_batches(
            artifacts.checkpoint, artifacts.data, shapes, max_sequence=settings.max_sequence
        ),
        plan=settings.plan,
        processors=record.processors,
        check=partial(check_logits, classes=classes_of(artifacts.checkpoint)),
        machine=machine,
        limits=limits,
    )
    measured.run()
    record.points, record.spent_s = measured.points, measured.spent_s
    record.lost_s, record.busiest = machine.lost_s, machine.busiest
    if measured.failures and all(point["reason"] is not None for point in record.points):
        set_failure(record, measured.failures[0], record.variant, limits)
