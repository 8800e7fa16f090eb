"""Measure the throughput of a variant, by instances, threads and batch."""

from tightrope.artifacts.paths import Artifacts
from tightrope.jobs.job import current_job
from tightrope.measure.run import TimingSettings
from tightrope.measure.throughput import measure_throughput

job = current_job(globals())
measure_throughput(
    Artifacts.of(job.input),
    job.output.record,
    TimingSettings.of(job, job.params.throughput),
    model=job.wildcards.model,
    variant=job.wildcards.variant,
)
