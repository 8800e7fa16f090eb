"""Time the models of a family in the same rounds, on one device."""

from tightrope.jobs.job import current_job
from tightrope.measure.family.measure import FamilyFiles, race_family
from tightrope.measure.race.measure import RaceSettings
from tightrope.measure.settings import TimingSettings

job = current_job(globals())
race_family(
    FamilyFiles(**dict(job.input.items())),
    job.output.record,
    TimingSettings.of(job),
    RaceSettings(
        baseline=job.params.baseline,
        decision=job.params.decision,
        budget=job.params.budget_points / 100,
        accept_disturbed=job.params.accept_disturbed,
    ),
    root=job.wildcards.model,
    device=job.wildcards.device,
)
