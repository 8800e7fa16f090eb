"""Read the data of a model, and write its distinct examples in their order."""

from functools import partial

from tightrope.data.prepare import prepare_data
from tightrope.data.splits import sizes_of
from tightrope.jobs.child import Limits, run_or_stop
from tightrope.jobs.job import current_job
from tightrope.signature import IMAGE

job = current_job(globals())
prepare = partial(
    prepare_data,
    job.output.manifest,
    source=job.params.data,
    columns=job.params.columns,
    sizes=sizes_of(job.resources),
    limits=job.params.limits,
    seed=job.params.seed,
    task=job.params.task,
    images=job.params.images,
)
if left_out := run_or_stop(job.params.data, prepare, limits=Limits.of(job)):
    image = "rows without image or label, or files that are no images by their names"
    what = image if job.params.task == IMAGE else "rows without text or label"
    print(f"{job.params.data}: left out {left_out} {what}", file=job.terminal)
