"""Write the calibration cache of one method and sample count."""

from tightrope.int8.calibrate import calibrate
from tightrope.jobs.execution import run_file_job
from tightrope.jobs.job import current_job
from tightrope.machine.cores import intra_op_threads

job = current_job(globals())
run_file_job(
    job,
    "not calibrated",
    lambda: calibrate(
        job.input.onnx,
        job.input.data,
        job.input.checkpoint,
        job.output.cache,
        method=job.wildcards.method,
        samples=int(job.wildcards.samples),
        max_sequence=job.settings.max_sequence,
        percentile=job.settings.percentile,
        threads=intra_op_threads(job.settings.threads),
        libraries=job.params.libraries,
    ),
)
