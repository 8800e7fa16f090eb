"""Measure a cascade: a small model answers where it is sure enough, and a large one elsewhere."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self, TextIO

from tightrope.artifacts.files import sha256
from tightrope.jobs.execution import Execution
from tightrope.machine.cores import pinned_processors
from tightrope.machine.quiet import QuietMachine
from tightrope.measure.cascade.measurement import CALIBRATION, EVALUATION, Measurement
from tightrope.measure.cascade.members import Member, require_same_labels, why_not_built
from tightrope.measure.run import facts_of_run
from tightrope.records.cascade import CascadeRecord


@dataclass(frozen=True, kw_only=True)
class CascadeSettings:
    """How a cascade is measured.

    `plan` holds `agreement`, `budget_points` and `batch`, see CascadeRecord, and `traffic`: its
    settings, or None where the cascade is not put under traffic. Up to `quiet_seconds`
    may be lost to other load; messages about waiting go to `terminal`.
    """

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
            plan={**job.params.cascade, "budget_points": job.params.budget_points},
            quiet_seconds=job.resources.quiet_seconds,
            execution=Execution.of(job),
            terminal=job.terminal,
        )


def measure_cascade(
    members: tuple[Member, Member],
    splits: dict[str, Path],
    target: Path | str,
    settings: CascadeSettings,
    *,
    cascade: str,
) -> None:
    """Write the CascadeRecord of `cascade`, also if an engine fails.

    `members` are the small and the large model, `splits` the manifests of `calibration` and
    `evaluation`. Raises TightropeError for a transient failure unless this is the last attempt,
    where the models have other labels, and where accuracy is asked for without labels.
    """
    require_same_labels(members)
    execution, plan, small = settings.execution, settings.plan, members[0]
    facts = [
        facts_of_run(one.engine, one.checkpoint, execution, model=one.model, variant=one.variant)
        for one in members
    ]
    record = CascadeRecord(
        cascade=cascade,
        small_model=small.model,
        small_variant=small.variant,
        small_engine_sha256=facts[0]["engine_sha256"],
        **facts[1],
        calibration_sha256=sha256(splits[CALIBRATION]),
        data_sha256=sha256(splits[EVALUATION]),
        agreement=plan["agreement"],
        budget_points=plan["budget_points"],
        threads=execution.threads,
        processors=pinned_processors(execution.threads),
        batch=plan["batch"],
    )
    if (reason := why_not_built(members)) is not None:
        record.status, record.reason = "failed", reason
    else:
        machine = QuietMachine(record.processors, settings.quiet_seconds, settings.terminal)
        Measurement(record, members, splits, machine, execution.limits, plan["traffic"]).run()
    record.write(target)
