"""Time some epochs of a model's training, and throw its weights away."""

from tightrope.jobs.child import Limits
from tightrope.jobs.job import current_job
from tightrope.machine.cores import intra_op_threads
from tightrope.machine.host import require_host
from tightrope.training.measure import measure_training

job = current_job(globals())
require_host(job.params.host)
measure_training(
    job.input.source,
    job.input.data,
    job.output.record,
    model=job.wildcards.model,
    recipe=job.params.train,
    activation=job.params.activation,
    plan=job.params.training,
    quiet_seconds=job.resources.quiet_seconds,
    device="cuda" if job.resources.gpu else "cpu",
    threads=intra_op_threads(job.params.threads),
    libraries=job.params.libraries,
    limits=Limits.of(job.resources),
    terminal=job.terminal,
)
