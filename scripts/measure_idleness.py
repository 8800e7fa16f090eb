"""Measure the first call of a variant after pauses, paired with calls back to back."""

from tightrope.artifacts.paths import Artifacts
from tightrope.jobs.job import current_job
from tightrope.measure.idleness import measure_idleness
from tightrope.measure.run import TimingSettings

job = current_job(globals())
measure_idleness(
    Artifacts.of(job.input),
    job.output.record,
    TimingSettings.of(job, job.params.idleness, [job.params.shape]),
    model=job.wildcards.model,
    variant=job.wildcards.variant,
)
