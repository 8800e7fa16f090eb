"""Measure a variant under traffic with MLCommons LoadGen, for each padding and scenario."""

from tightrope.artifacts.paths import Artifacts
from tightrope.jobs.execution import Execution
from tightrope.jobs.job import current_job
from tightrope.measure.traffic.measure import TrafficSettings, measure_traffic

job = current_job(globals())
settings = TrafficSettings(
    max_sequence=job.params.max_sequence,
    plan=job.params.traffic,
    quiet_seconds=job.resources.quiet_seconds,
    execution=Execution.of(job),
    terminal=job.terminal,
)
measure_traffic(
    Artifacts.of(job.input),
    job.output.record,
    settings,
    model=job.wildcards.model,
    variant=job.wildcards.variant,
)
