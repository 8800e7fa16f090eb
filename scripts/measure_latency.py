"""Time one variant and its baseline in alternating blocks."""

from tightrope.artifacts.paths import Artifacts
from tightrope.jobs.job import current_job
from tightrope.measure.latency import measure_latency
from tightrope.measure.run import TimingSettings

job = current_job(globals())
measure_latency(
    Artifacts.of(job.input),
    job.input.baseline,
    job.output.record,
    TimingSettings.of(job, job.settings.latency, job.settings.shapes),
    model=job.wildcards.model,
    variant=job.wildcards.variant,
    judged=dict(job.input.items()).get("judged"),
)
