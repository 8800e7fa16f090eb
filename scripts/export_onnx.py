"""Export the checkpoint to ONNX with a dynamic batch and, for texts, a dynamic sequence."""

from functools import partial

from tightrope.jobs.execution import run_file_job
from tightrope.jobs.job import current_job
from tightrope.machine.cores import intra_op_threads
from tightrope.onnx.export import export_onnx

job = current_job(globals())
threads = intra_op_threads(job.settings.threads)
work = partial(export_onnx, job.input.checkpoint, job.output.onnx, threads=threads)
run_file_job(job, "not exported", work)
