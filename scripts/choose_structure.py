"""Choose what of a model is kept to meet its target of latency or size."""

from tightrope.jobs.job import current_job
from tightrope.measure.structure_choice import run_choice

run_choice(current_job(globals()))
