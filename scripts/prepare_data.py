"""Read the data of a model and write its splits."""

from tightrope.data import prepare_data
from tightrope.job import current_job

job = current_job(globals())
prepare_data(
    job.output.manifest,
    source=job.params.data,
    columns=job.params.columns,
    splits=job.params.splits,
    pool=job.params.pool,
    seed=job.params.seed,
)
