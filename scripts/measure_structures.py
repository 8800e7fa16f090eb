"""Measure the latency of smaller structures of a trained model."""

from pathlib import Path

from tightrope.jobs.job import current_job
from tightrope.measure.run import TimingSettings
from tightrope.measure.structures import measure_structures

job = current_job(globals())
measure_structures(
    Path(job.input.checkpoint),
    Path(job.input.timing),
    job.output.structures,
    TimingSettings.of(job, job.settings.engine, [job.settings.engine["shape"]]),
    host=job.settings.host,
)
