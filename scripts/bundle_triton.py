"""Write a model repository for Triton Inference Server from one variant."""

from functools import partial
from pathlib import Path

from tightrope.bundle.triton import write_triton
from tightrope.jobs.child import Limits, run_or_stop
from tightrope.jobs.job import current_job

job = current_job(globals())
work = partial(
    write_triton,
    job.output.bundle,
    engine=Path(job.input.engine),
    checkpoint=Path(job.input.checkpoint),
    summary=Path(job.input.summary),
    model=job.wildcards.model,
    templates={"config": Path(job.input.config), "readme": Path(job.input.readme)},
)
run_or_stop(job.output.bundle, work, limits=Limits.of(job))
