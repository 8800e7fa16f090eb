"""Read the data of a model and write its splits."""

from tightrope.data import prepare_data
from tightrope.job import current_job

job = current_job(globals())
left_out = prepare_data(
    job.output.manifest,
    source=job.params.data,
    columns=job.params.columns,
    splits=job.params.splits,
    pool=job.params.pool,
    seed=job.params.seed,
)
if left_out:
    print(f"{job.params.data}: left out {left_out} rows without text or label", file=job.terminal)
