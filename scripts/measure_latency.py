"""Time one variant and its baseline in turn."""

from tightrope.jobs.child import Limits
from tightrope.jobs.job import current_job
from tightrope.machine.cores import intra_op_threads
from tightrope.machine.host import require_host
from tightrope.measure.latency import measure_latency

job = current_job(globals())
require_host(job.params.host)
measure_latency(
    job.input.engine,
    job.input.baseline,
    job.input.checkpoint,
    job.input.data,
    job.output.record,
    model=job.wildcards.model,
    variant=job.wildcards.variant,
    shapes=job.params.shapes,
    plan=job.params.latency,
    quiet_seconds=job.resources.quiet_seconds,
    max_sequence=job.params.max_sequence,
    threads=intra_op_threads(job.params.threads),
    libraries=job.params.libraries,
    limits=Limits.of(job.resources),
    terminal=job.terminal,
    audit=dict(job.input.items()).get("audit"),
)
