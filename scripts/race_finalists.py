"""Race the finalists of one model on one device, timed in the same rounds."""

from tightrope.decide.finalists import RaceSettings
from tightrope.jobs.job import current_job
from tightrope.measure.race import race_finalists
from tightrope.measure.run import TimingSettings
from tightrope.variants import device_of

job = current_job(globals())
race_finalists(
    job.output.record,
    TimingSettings.of(job, job.settings.latency, job.settings.shapes),
    RaceSettings.of(job),
    model=job.wildcards.model,
    device=device_of(job.wildcards.device),
    **{name: paths for name, paths in job.input.items() if name != "logits"},
)
