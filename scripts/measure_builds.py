"""Build the engine of a variant several times and compare the builds."""

from tightrope.artifacts.paths import Artifacts
from tightrope.jobs.job import current_job
from tightrope.measure.builds.measure import measure_builds, settings_of
from tightrope.measure.builds.sources import sources_of

job = current_job(globals())
measure_builds(
    Artifacts.of(job.input),
    sources_of(job.input.items()),
    job.output.record,
    settings_of(job),
    model=job.wildcards.model,
    variant=job.wildcards.variant,
)
