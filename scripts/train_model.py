"""Fine-tune the source checkpoint, or only convert it where the model has no recipe."""

from tightrope.cores import intra_op_threads
from tightrope.job import current_job
from tightrope.training import train_model

job = current_job(globals())
train_model(
    job.output.manifest,
    source=job.input.source,
    data=job.input.data,
    recipe=job.params.train,
    inputs=job.params.inputs,
    threads=intra_op_threads(job.params.threads),
    seed=job.params.seed,
    terminal=job.terminal,
)
