"""Measure the peaks of this machine: matrix products, copies, the smallest operator."""

from tightrope.jobs.execution import Execution
from tightrope.jobs.job import current_job
from tightrope.measure.profile.peaks import measure_peaks

job = current_job(globals())
measure_peaks(job.output.peaks, device=job.wildcards.device, execution=Execution.of(job))
