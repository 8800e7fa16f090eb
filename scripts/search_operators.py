"""Find SmoothQuant and the operators in float with which int8-auto keeps the accuracy budget."""

from tightrope.int8.search import SearchInputs, SearchSettings, search_operators
from tightrope.jobs.execution import run_file_job
from tightrope.jobs.job import current_job
from tightrope.machine.cores import intra_op_threads

job = current_job(globals())
inputs = SearchInputs(**dict(job.input.items()))
settings = SearchSettings(
    smoothquant=job.params.smoothquant,
    budget_points=job.params.budget_points,
    sensitivity_samples=job.params.sensitivity_samples,
    max_sequence=job.params.max_sequence,
    threads=intra_op_threads(job.params.threads),
    libraries=job.params.libraries,
)
run_file_job(
    job,
    "not searched",
    lambda: search_operators(inputs, job.output.search, job.wildcards.scheme, settings),
)
