"""Fetch or copy the checkpoint of a model, and check it."""

from functools import partial

from tightrope.checkpoint.source import prepare_checkpoint
from tightrope.jobs.child import Limits, run_or_stop
from tightrope.jobs.job import current_job

job = current_job(globals())
prepare = partial(
    prepare_checkpoint,
    job.output.manifest,
    source=job.settings.checkpoint,
    expected_sha256=job.settings.checkpoint_sha256,
    seed=job.settings.seed,
    task=job.settings.task,
    quantized=job.settings.quantized,
)
run_or_stop(job.settings.checkpoint, prepare, limits=Limits.of(job))
