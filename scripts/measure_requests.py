"""Measure what a request takes besides the call, and count what the model takes at least."""

from tightrope.jobs.execution import require_node, run_file_job
from tightrope.jobs.job import current_job
from tightrope.machine.cores import intra_op_threads
from tightrope.measure.profile_inputs import measure_requests

job = current_job(globals())
require_node(job)
run_file_job(
    job,
    "requests not measured",
    lambda: measure_requests(
        job.input.checkpoint,
        job.input.data,
        dict(job.input.items()).get("onnx"),
        job.output.requests,
        shapes=job.settings.shapes,
        max_sequence=job.settings.max_sequence,
        threads=intra_op_threads(job.settings.threads),
    ),
)
