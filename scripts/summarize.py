"""Write reports/summary.json and reports/summary.csv from all records."""

from tightrope.jobs.job import current_job
from tightrope.summary.inputs import Inputs, Settings
from tightrope.summary.summarize import summarize

job = current_job(globals())
summarize(
    Inputs(**dict(job.input.items())),
    Settings(
        configuration=job.params.configuration,
        overrides=job.params.overrides,
        unavailable=job.params.unavailable,
        baselines=job.params.baselines,
        references=job.params.references,
        budget_points=job.params.budget_points,
        accept_disturbed=job.params.accept_disturbed,
        goal=job.params.goal,
        prices=job.params.prices,
        prepared=job.params.prepared,
    ),
    json_target=job.output.json,
    csv_target=job.output.csv,
)
