"""A job that measures an engine: its settings, and what its record holds of the run."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, Self, TextIO, TypedDict

from tightrope.artifacts.content import read_artifact
from tightrope.artifacts.files import sha256
from tightrope.artifacts.manifest import Artifacts, open_manifest, require_engine_of, require_model
from tightrope.artifacts.manifest_types import EngineManifest
from tightrope.inputs.arrays import Arrays
from tightrope.inputs.encode import timing_batches
from tightrope.jobs.execution import Execution
from tightrope.machine.interference import OF_RUN, QuietMachine
from tightrope.records.record import Record, require_engine

Shape = dict[str, int]


class Judged(TypedDict):
    """What is read of a record of accuracy before an engine is timed."""

    status: Literal["ok", "failed"]
    reason: str | None
    transient: bool | None
    engine_sha256: str | None
    collapsed: dict[str, Any] | None


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
            max_sequence=job.settings.max_sequence,
            execution=Execution.of(job),
            terminal=job.terminal,
            shapes=[*shapes],
            streams=dict(job.settings.items()).get("streams", ()),
            run=OF_RUN,
        )

    def machine(self, processors: list[int]) -> QuietMachine:
        """Return the budget of time that may be lost to other load on these processors."""
        return QuietMachine(processors, self.quiet_seconds, self.terminal, self.run)


def batches_of(settings: TimingSettings, checkpoint: Path | str, data: Path | str) -> list[Arrays]:
    """Return a batch of each shape, of the examples in `data` for the model of `checkpoint`."""
    return timing_batches(checkpoint, data, settings.shapes, max_sequence=settings.max_sequence)


def facts_of_run(artifacts: Artifacts, execution: Execution) -> dict[str, Any]:
    """Return what a Record holds of a run: names, `host`, `libraries` and `engine_sha256`.

    Raises ArtifactError where engine and checkpoint are not of this variant and model, or the
    engine was built from another checkpoint.
    """
    require_model(artifacts.checkpoint, artifacts.model)
    require_engine_of(artifacts.engine, artifacts.checkpoint, artifacts.variant)
    return {
        "model": artifacts.model,
        "variant": artifacts.variant,
        "host": execution.host(),
        "libraries": execution.libraries,
        "engine_sha256": sha256(artifacts.engine),
    }


def can_be_timed(record: Record, engine: Path, judged: Path | str | None = None) -> bool:
    """Return whether an engine can be timed; if not, `record` has failed with the reason.

    It was not built, or its record of accuracy, `judged`, says that it has failed or collapsed.
    Raises ArtifactError for the record of another engine.
    """
    built = open_manifest(engine, EngineManifest)
    if built["status"] != "ok":
        record.status, record.reason = "failed", f"not built: {built['reason']}"
    elif judged is not None:
        known = read_artifact(judged, Judged)
        require_engine(judged, known["engine_sha256"], sha256(engine))
        record.status, record.reason = known["status"], known["reason"]
        record.transient = known["transient"]
        if known["collapsed"] is not None:
            record.status, record.reason = "failed", known["collapsed"]["reason"]
    return record.status == "ok"
