"""Build one TVM engine from the checkpoint."""

from tightrope.build_job import run_build
from tightrope.job import current_job

run_build(current_job(globals()))
