"""Fine-tune the source checkpoint, or only convert it if the model has no training recipe."""

from functools import partial

from tightrope.jobs.child import Limits
from tightrope.jobs.job import current_job
from tightrope.machine.cores import intra_op_threads
from tightrope.model.pruning import Changes
from tightrope.training.recipe import train_or_stop
from tightrope.training.train import TrainingSettings, train_model

job = current_job(globals())
settings = TrainingSettings(
    model=job.wildcards.model,
    recipe=job.settings.train,
    qat=job.settings.qat,
    inputs=job.settings.inputs,
    changes=Changes.of(job),
    labels=job.settings.labels,
    sizes=job.resources.sizes.split(),
    distill=job.settings.distill,
    threads=intra_op_threads(job.settings.threads),
    seed=job.settings.seed,
    state=job.settings.state,
    provenance=[job.params.code, job.params.libraries],
    device="cuda" if job.resources.gpu else "cpu",
)
files = {name: file for name, file in job.input.items() if name != "structure"}
train = partial(train_model, job.output.manifest, settings, **files, terminal=job.terminal)
limits = Limits.of(job)
train_or_stop(train, settings.asked, model=job.wildcards.model, limits=limits)
