"""Write which rows of a model's data are one split."""

from tightrope.data.ranges import sizes_of
from tightrope.data.split import split_data
from tightrope.jobs.job import current_job

job = current_job(globals())
split_data(
    job.input.data, job.output.manifest, split=job.wildcards.split, sizes=sizes_of(job.resources)
)
