"""Measure the first call of a variant after pauses, paired with calls back to back."""

from tightrope.artifacts.paths import Artifacts
from tightrope.jobs.execution import Execution
from tightrope.jobs.job import current_job
from tightrope.measure.idleness.measure import measure_idleness
from tightrope.measure.settings import TimingSettings

job = current_job(globals())
measure_idleness(
    Artifacts.of(job.input),
    job.output.record,
    TimingSettings(
        shapes=[job.params.shape],
        plan=job.params.idleness,
        quiet_seconds=job.resources.quiet_seconds,
        max_sequence=job.params.max_sequence,
        execution=Execution.of(job),
        terminal=job.terminal,
    ),
    model=job.wildcards.model,
    variant=job.wildcards.variant,
)
