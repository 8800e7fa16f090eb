"""Measure a profiled variant again without each cause of its time that a setting removes."""

from tightrope.artifacts.manifest import Artifacts
from tightrope.jobs.job import current_job
from tightrope.measure.causes import sources_of, verify_causes
from tightrope.measure.run import TimingSettings

job = current_job(globals())
verify_causes(
    Artifacts.of(job),
    sources_of(job.input.items()),
    job.input.profile,
    job.output.record,
    TimingSettings.of(job, {}),
)
