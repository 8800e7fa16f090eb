"""Keep every prediction of one variant on the evaluation split."""

from tightrope.jobs.child import Limits
from tightrope.jobs.job import current_job
from tightrope.machine.cores import intra_op_threads
from tightrope.machine.host import require_host
from tightrope.measure.accuracy import measure_accuracy

job = current_job(globals())
require_host(job.params.host)
measure_accuracy(
    job.input.engine,
    job.input.checkpoint,
    job.input.data,
    job.output.record,
    model=job.wildcards.model,
    variant=job.wildcards.variant,
    max_sequence=job.params.max_sequence,
    max_seconds=job.params.max_seconds,
    threads=intra_op_threads(job.params.threads),
    libraries=job.params.libraries,
    limits=Limits.of(job.resources),
)
