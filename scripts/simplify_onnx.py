"""Simplify an ONNX file, and check its logits against the checkpoint's."""

from functools import partial

from tightrope.jobs.execution import run_file_job
from tightrope.jobs.job import current_job
from tightrope.machine.cores import intra_op_threads
from tightrope.onnx.simplify import simplify_onnx

job = current_job(globals())
simplify = partial(
    simplify_onnx,
    job.input.onnx,
    job.input.checkpoint,
    job.input.data,
    job.output.onnx,
    threads=intra_op_threads(job.settings.threads),
)
run_file_job(job, "not simplified", simplify)
