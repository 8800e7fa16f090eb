"""Find SmoothQuant and the operators in float with which int8-auto keeps the accuracy budget."""

from tightrope.int8.search import Search, search_operators
from tightrope.jobs.execution import run_file_job
from tightrope.jobs.job import current_job
from tightrope.machine.cores import intra_op_threads

job = current_job(globals())
search = Search(
    **dict(job.input.items()),
    scheme=job.wildcards.scheme,
    smoothquant=job.settings.search_smoothquant,
    budget_points=job.settings.budget_points,
    sensitivity_samples=job.settings.sensitivity_samples,
    max_sequence=job.settings.max_sequence,
    threads=intra_op_threads(job.settings.threads),
    libraries=job.params.libraries,
)
run_file_job(job, "not searched", lambda: search_operators(search, job.output.search))
