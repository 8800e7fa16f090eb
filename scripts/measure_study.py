"""Measure a variant as one of the studies does, by the name of the rule."""

from tightrope.artifacts.manifest import Artifacts
from tightrope.jobs.job import current_job
from tightrope.measure.run import TimingSettings
from tightrope.measure.study import measure_study

job = current_job(globals())
measure_study(
    job.settings.study,
    Artifacts.of(job),
    job.output.record,
    TimingSettings.of(job, job.settings.plan),
)
