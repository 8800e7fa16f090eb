"""Profile one variant: its operators, and what bounds its calls."""

from tightrope.artifacts.manifest import Artifacts
from tightrope.jobs.execution import Execution
from tightrope.jobs.job import current_job
from tightrope.measure.profile import measure_profile

job = current_job(globals())
measure_profile(
    Artifacts.of(job),
    job.input.requests,
    job.input.peaks,
    job.output.record,
    max_sequence=job.settings.max_sequence,
    execution=Execution.of(job),
)
