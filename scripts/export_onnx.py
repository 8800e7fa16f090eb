"""Export the checkpoint to ONNX with a dynamic batch and, for texts, a dynamic sequence."""

from tightrope.jobs.job import current_job
from tightrope.machine.cores import intra_op_threads
from tightrope.onnx.export import export_onnx

job = current_job(globals())
export_onnx(job.input.checkpoint, job.output.onnx, threads=intra_op_threads(job.params.threads))
