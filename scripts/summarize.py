"""Write reports/summary.json and reports/summary.csv from all records."""

from functools import partial

import msgspec
from tightrope.jobs.child import Limits, run_or_stop
from tightrope.jobs.job import current_job
from tightrope.summary.candidates import Goal
from tightrope.summary.runs import Inputs, Settings, step_digests
from tightrope.summary.summarize import summarize

job = current_job(globals())
work = partial(
    summarize,
    Inputs(**dict(job.input.items())),
    Settings(
        configuration=job.params.configuration,
        overrides=job.params.overrides,
        code=step_digests(),
        unavailable=job.params.unavailable,
        failed=job.params.failed,
        baselines=job.params.baselines,
        references=job.params.references,
        budget_points=job.params.budget_points,
        accept_disturbed=job.params.accept_disturbed,
        goal=msgspec.convert(job.params.goal, Goal | None),
        prices=job.params.prices,
        prepared=job.params.prepared,
    ),
    json_target=job.output.json,
    csv_target=job.output.csv,
    processes=getattr(job, "threads", 1),
)
run_or_stop(job.output.json, work, limits=Limits.of(job))
