"""Time each operator with weights alone, in float and in int8."""

from tightrope.int8.costs import measure_costs
from tightrope.jobs.execution import require_node, run_file_job
from tightrope.jobs.job import current_job
from tightrope.machine.cores import intra_op_threads

job = current_job(globals())
require_node(job)
run_file_job(
    job,
    "costs not measured",
    lambda: measure_costs(
        job.input.onnx,
        job.input.quantized,
        job.output.costs,
        shapes=job.settings.shapes,
        host=job.settings.host,
        threads=intra_op_threads(job.settings.threads),
        libraries=job.params.libraries,
    ),
)
