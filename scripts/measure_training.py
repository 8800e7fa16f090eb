"""Time some epochs of a model's training and discard the weights."""

from tightrope.jobs.execution import Execution
from tightrope.jobs.job import current_job
from tightrope.model.pruning import Changes
from tightrope.training.measure import measure_training

job = current_job(globals())
measure_training(
    job.input.source,
    job.input.data,
    job.output.record,
    model=job.wildcards.model,
    recipe=job.settings.train,
    changes=Changes.of(job),
    labels=job.settings.labels,
    plan=job.settings.training,
    quiet_seconds=job.resources.quiet_seconds,
    device="cuda" if job.resources.gpu else "cpu",
    execution=Execution.of(job),
    terminal=job.terminal,
)
