"""Time the models of a family in the same rounds, on one device."""

from tightrope.jobs.job import current_job
from tightrope.measure.family.measure import FamilyFiles, race_family
from tightrope.measure.race.measure import RaceSettings
from tightrope.measure.settings import TimingSettings
from tightrope.variants import device_of

job = current_job(globals())
race_family(
    FamilyFiles(**dict(job.input.items())),
    job.output.record,
    TimingSettings.of(job),
    RaceSettings.of(job),
    root=job.wildcards.model,
    device=device_of(job.wildcards.device),
)
