"""Search for the fewest operators in float that keep the accuracy budget."""

from tightrope.int8.search import SearchInputs, SearchSettings, search_operators
from tightrope.jobs.file_job import run_file_job
from tightrope.jobs.job import current_job
from tightrope.machine.cores import intra_op_threads

job = current_job(globals())
inputs = SearchInputs(**dict(job.input.items()))
settings = SearchSettings(
    code=job.params.code,
    smoothquant=job.params.smoothquant,
    state=job.params.state,
    budget_points=job.params.budget_points,
    seconds=job.params.seconds,
    max_sequence=job.params.max_sequence,
    threads=intra_op_threads(job.params.threads),
    libraries=job.params.libraries,
)
run_file_job(
    job,
    "not searched",
    lambda: search_operators(inputs, job.output.search, job.wildcards.scheme, settings),
)
