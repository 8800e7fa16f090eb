"""Measure a small and a large model that are served as one."""

from pathlib import Path

from tightrope.jobs.job import current_job
from tightrope.measure.cascade.measure import CascadeSettings, measure_cascade
from tightrope.measure.cascade.members import members_of

job = current_job(globals())
measure_cascade(
    members_of(job),
    {name: Path(job.input[name]) for name in ("calibration", "evaluation")},
    job.output.record,
    CascadeSettings.of(job),
    cascade=job.wildcards.cascade,
)
