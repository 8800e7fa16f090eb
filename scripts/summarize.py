"""Write reports/summary.json and reports/summary.csv from all records."""

from functools import partial

import msgspec
from tightrope.jobs.child import Limits, run_or_stop
from tightrope.jobs.job import current_job
from tightrope.summary.runs import Inputs, Settings, step_digests
from tightrope.summary.summarize import summarize

job = current_job(globals())
settings = {**dict(job.settings.items()), "code": step_digests()}
work = partial(
    summarize,
    Inputs(**dict(job.input.items())),
    msgspec.convert(settings, Settings),
    json_target=job.output.json,
    csv_target=job.output.csv,
    processes=getattr(job, "threads", 1),
)
run_or_stop(job.output.json, work, limits=Limits.of(job))
