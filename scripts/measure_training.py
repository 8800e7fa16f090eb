"""Time some epochs of a model's training, and throw its weights away."""

from tightrope.cores import intra_op_threads
from tightrope.host import require_host
from tightrope.job import current_job
from tightrope.supervise import Limits
from tightrope.training_measurement import measure_training

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
