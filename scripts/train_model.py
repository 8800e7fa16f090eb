"""Fine-tune the source checkpoint, or only convert it if the model has no training recipe."""

from tightrope.jobs.child import Limits
from tightrope.jobs.job import current_job
from tightrope.machine.cores import intra_op_threads
from tightrope.training.micro_batches import train_or_stop
from tightrope.training.train import train_model

job = current_job(globals())
train_or_stop(
    lambda parts: train_model(
        job.output.manifest,
        source=job.input.source,
        data=job.input.data,
        recipe=job.params.train,
        inputs=job.params.inputs,
        activation=job.params.activation,
        threads=intra_op_threads(job.params.threads),
        seed=job.params.seed,
        terminal=job.terminal,
        state=job.params.state,
        provenance=[job.params.code, job.params.libraries],
        device="cuda" if job.resources.gpu else "cpu",
        parts=parts,
    ),
    job.params.train,
    model=job.wildcards.model,
    limits=Limits.of(job.resources),
)
