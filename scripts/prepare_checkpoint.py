"""Fetch or copy the checkpoint of a model, and check it."""

from functools import partial

from tightrope.checkpoint.source import prepare_checkpoint
from tightrope.jobs.child import Limits, run_or_stop
from tightrope.jobs.job import current_job

job = current_job(globals())
prepare = partial(
    prepare_checkpoint,
    job.output.manifest,
    source=job.params.checkpoint,
    expected_sha256=job.params.checkpoint_sha256,
    seed=job.params.seed,
    task=job.params.task,
    quantized=job.params.quantized,
)
run_or_stop(job.params.checkpoint, prepare, limits=Limits.of(job))
