"""Render reports/summary.json as a page of HTML that needs no network."""

from functools import partial
from pathlib import Path

from tightrope.jobs.child import Limits, run_or_stop
from tightrope.jobs.job import current_job
from tightrope.report.page import render_page

job = current_job(globals())
render = partial(
    render_page,
    Path(job.input.summary),
    Path(job.output.page),
    template=[Path(path) for path in job.input.template],
    style=Path(job.input.style),
    script=Path(job.input.script),
    graphs=[Path(path) for path in job.input.graphs],
)
run_or_stop(job.output.page, render, limits=Limits.of(job))
