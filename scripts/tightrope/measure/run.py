"""A job that measures an engine: its settings, and what its record holds of the run."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self, TextIO

from tightrope.artifacts.content import read_artifact
from tightrope.artifacts.descent import require_engine_of, require_model
from tightrope.artifacts.files import sha256
from tightrope.artifacts.manifest import open_manifest
from tightrope.artifacts.manifest_types import Audited, EngineManifest
from tightrope.artifacts.paths import Artifacts
from tightrope.errors import ArtifactError
from tightrope.inputs.arrays import Arrays
from tightrope.inputs.timing_batches import timing_batches
from tightrope.jobs.execution import Execution
from tightrope.machine.quiet import OF_RUN, QuietMachine
from tightrope.records.record import Record

Shape = dict[str, int]


@dataclass(frozen=True, kw_only=True)
class TimingSettings:
    """How engines are timed, and at which shapes.

    `plan` holds the settings of the study, such as `latency`. Up to `quiet_seconds` may be lost to
    other load, by all jobs of the `run` together; messages about waiting go to `terminal`. Texts
    are cut at `max_sequence` tokens. `streams` are numbers of streams of a GPU on which the variant
    is timed as well.
    """

    plan: dict[str, Any]
    quiet_seconds: float
    max_sequence: int
    execution: Execution
    terminal: TextIO
    shapes: list[Shape] = field(default_factory=list)
    streams: Sequence[int] = ()
    run: Path | None = None

    @classmethod
    def of(cls, job: Any, plan: dict[str, Any], shapes: Sequence[Shape] = ()) -> Self:
        """Return the settings of a job, see `tightrope.jobs.job.current_job`.

        Raises TightropeError where this machine does not match the host key of the job.
        """
        return cls(
            plan=plan,
            quiet_seconds=job.resources.quiet_seconds,
            max_sequence=job.params.max_sequence,
            execution=Execution.of(job),
            terminal=job.terminal,
            shapes=[*shapes],
            streams=dict(job.params.items()).get("streams", ()),
            run=OF_RUN,
        )

    def machine(self, processors: list[int]) -> QuietMachine:
        """Return the budget of time that may be lost to other load on these processors."""
        return QuietMachine(processors, self.quiet_seconds, self.terminal, self.run)


def batches_of(settings: TimingSettings, checkpoint: Path | str, data: Path | str) -> list[Arrays]:
    """Return a batch of each shape, of the examples in `data` for the model of `checkpoint`."""
    return timing_batches(checkpoint, data, settings.shapes, max_sequence=settings.max_sequence)


def facts_of_run(
    artifacts: Artifacts, execution: Execution, *, model: str, variant: str
) -> dict[str, Any]:
    """Return what a Record holds of a run: names, `host`, `libraries` and `engine_sha256`.

    Raises ArtifactError where engine and checkpoint are not of this variant and model, or the
    engine was built from another checkpoint.
    """
    require_model(artifacts.checkpoint, model)
    require_engine_of(artifacts.engine, artifacts.checkpoint, variant)
    return {
        "model": model,
        "variant": variant,
        "host": execution.host(),
        "libraries": execution.libraries,
        "engine_sha256": sha256(artifacts.engine),
    }


def can_be_timed(record: Record, engine: Path, audit: Path | str | None = None) -> bool:
    """Return whether an engine can be timed; if not, `record` has failed with the reason.

    Raises as `why_not_timed` does.
    """
    record.reason = why_not_timed(engine, audit)
    record.status = "ok" if record.reason is None else "failed"
    return record.reason is None


def why_not_timed(engine: Path, audit: Path | str | None = None) -> str | None:
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
