"""Time one variant and its baseline in alternating blocks."""

from tightrope.artifacts.manifest import Artifacts
from tightrope.jobs.job import current_job
from tightrope.measure.latency import measure_latency
from tightrope.measure.run import TimingSettings

job = current_job(globals())
measure_latency(
    Artifacts.of(job),
    job.input.baseline,
    job.output.record,
    TimingSettings.of(job, job.settings.latency, job.settings.shapes),
    judged=dict(job.input.items()).get("judged"),
)
