"""Measure a variant under traffic with MLCommons LoadGen, for each padding and scenario."""

from tightrope.jobs.child import Limits
from tightrope.jobs.job import current_job
from tightrope.machine.cores import intra_op_threads
from tightrope.machine.host import require_host
from tightrope.measure.traffic.measure import measure_traffic

job = current_job(globals())
require_host(job.params.host)
measure_traffic(
    job.input.engine,
    job.input.checkpoint,
    job.input.data,
    job.output.record,
    model=job.wildcards.model,
    variant=job.wildcards.variant,
    max_sequence=job.params.max_sequence,
    threads=intra_op_threads(job.params.threads),
    libraries=job.params.libraries,
    plan=job.params.traffic,
    quiet_seconds=job.resources.quiet_seconds,
    limits=Limits.of(job.resources),
    terminal=job.terminal,
)
