"""Measure the latency of smaller structures of a trained model."""

from pathlib import Path

from tightrope.jobs.job import current_job
from tightrope.measure.structures.measure import measure_structures, settings_of

job = current_job(globals())
measure_structures(
    Path(job.input.checkpoint),
    Path(job.input.timing),
    job.output.structures,
    settings_of(job),
    host=job.params.host,
)
