"""Measure the peaks of this machine: matrix products, copies, the smallest operator."""

from tightrope.jobs.file_job import run_file_job
from tightrope.jobs.job import current_job
from tightrope.machine.cores import intra_op_threads
from tightrope.machine.host import require_host
from tightrope.measure.profile.peaks import measure_peaks

job = current_job(globals())
require_host(job.params.host)
run_file_job(
    job,
    "peaks not measured",
    lambda: measure_peaks(
        job.output.peaks,
        device=job.wildcards.device,
        threads=intra_op_threads(job.params.threads),
    ),
)
