"""Time the models of a family in the same rounds, on one device."""

from tightrope.decide.finalists import RaceSettings
from tightrope.jobs.job import current_job
from tightrope.measure.family import race_family
from tightrope.measure.run import TimingSettings
from tightrope.variants import device_of

job = current_job(globals())
race_family(
    job.output.record,
    TimingSettings.of(job, job.settings.latency, job.settings.shapes),
    RaceSettings.of(job),
    root=job.wildcards.model,
    device=device_of(job.wildcards.device),
    **{name: paths for name, paths in job.input.items() if name != "logits"},
)
