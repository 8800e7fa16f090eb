"""Build the engine of one variant."""

from tightrope.engines.build import run_build
from tightrope.jobs.job import current_job

run_build(current_job(globals()))
