"""Write which rows of a model's data are one split."""

from functools import partial

from tightrope.data.splits import sizes_of, split_data
from tightrope.jobs.child import Limits, run_or_stop
from tightrope.jobs.job import current_job

job = current_job(globals())
split = partial(split_data, split=job.wildcards.split, sizes=sizes_of(job.resources))
run_or_stop(job.output.manifest, split, job.input.data, job.output.manifest, limits=Limits.of(job))
