"""Race the finalists of one model on one device, timed in the same rounds."""

from tightrope.jobs.job import current_job
from tightrope.measure.race.measure import Entrants, RaceSettings, race_finalists
from tightrope.measure.settings import TimingSettings

job = current_job(globals())
race_finalists(
    Entrants(**dict(job.input.items())),
    job.output.record,
    TimingSettings.of(job),
    RaceSettings(
        baseline=job.params.baseline,
        decision=job.params.decision,
        budget=job.params.budget_points / 100,
        accept_disturbed=job.params.accept_disturbed,
        goal=job.params.goal,
    ),
    model=job.wildcards.model,
    device=job.wildcards.device,
)
