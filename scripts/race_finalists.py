"""Race the finalists of one model on one device, timed in the same rounds."""

from tightrope.jobs.job import current_job
from tightrope.measure.race.measure import Entrants, RaceSettings, race_finalists
from tightrope.measure.settings import TimingSettings

job = current_job(globals())
race_finalists(
    Entrants(**dict(job.input.items())),
    job.output.record,
    TimingSettings.of(job),
    RaceSettings.of(job),
    model=job.wildcards.model,
    device=job.wildcards.device,
)
