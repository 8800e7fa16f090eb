"""Measure a variant under traffic with MLCommons LoadGen, for each padding and scenario."""

from tightrope.artifacts.paths import Artifacts
from tightrope.jobs.job import current_job
from tightrope.measure.run import TimingSettings
from tightrope.measure.traffic import measure_traffic

job = current_job(globals())
measure_traffic(
    Artifacts.of(job.input),
    job.output.record,
    TimingSettings.of(job, job.params.traffic),
    model=job.wildcards.model,
    variant=job.wildcards.variant,
)
