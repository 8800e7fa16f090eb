"""Time one variant and its baseline in alternating blocks."""

from tightrope.artifacts.paths import Artifacts
from tightrope.jobs.execution import Execution
from tightrope.jobs.job import current_job
from tightrope.measure.latency import measure_latency

job = current_job(globals())
measure_latency(
    Artifacts.of(job.input),
    job.input.baseline,
    job.output.record,
    model=job.wildcards.model,
    variant=job.wildcards.variant,
    shapes=job.params.shapes,
    plan=job.params.latency,
    quiet_seconds=job.resources.quiet_seconds,
    max_sequence=job.params.max_sequence,
    execution=Execution.of(job),
    terminal=job.terminal,
    audit=dict(job.input.items()).get("audit"),
)
