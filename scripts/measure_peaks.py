"""Measure the peaks of this machine: matrix products, copies, the smallest operator."""

from tightrope.jobs.execution import require_node, run_file_job
from tightrope.jobs.job import current_job
from tightrope.machine.cores import intra_op_threads
from tightrope.measure.profile_inputs import measure_peaks
from tightrope.variants import device_of

job = current_job(globals())
require_node(job)
run_file_job(
    job,
    "peaks not measured",
    lambda: measure_peaks(
        job.output.peaks,
        device=device_of(job.wildcards.device),
        threads=intra_op_threads(job.settings.threads),
    ),
)
