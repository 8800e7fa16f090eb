"""Export the checkpoint to ONNX, batch and sequence dynamic."""

from tightrope.cores import intra_op_threads
from tightrope.export import export_onnx
from tightrope.job import current_job

job = current_job(globals())
export_onnx(job.input.checkpoint, job.output.onnx, threads=intra_op_threads(job.params.threads))
