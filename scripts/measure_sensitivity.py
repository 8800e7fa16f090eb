"""Measure how each operator, alone in int8, changes the predictions."""

from tightrope.int8.sensitivity import measure_sensitivity
from tightrope.jobs.file_job import run_file_job
from tightrope.jobs.job import current_job
from tightrope.machine.cores import intra_op_threads

job = current_job(globals())
run_file_job(
    job,
    "sensitivity not measured",
    lambda: measure_sensitivity(
        job.input.onnx,
        job.input.quantized,
        job.input.data,
        job.input.checkpoint,
        job.output.sensitivity,
        samples=job.params.samples,
        max_sequence=job.params.max_sequence,
        threads=intra_op_threads(job.params.threads),
        libraries=job.params.libraries,
    ),
)
