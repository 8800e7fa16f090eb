"""Build one AOTInductor engine; for int8 it reads the calibration samples as well."""

from tightrope.build_job import run_build
from tightrope.calibration import calibration_batches
from tightrope.job import current_job

run_build(current_job(globals()), read_samples=calibration_batches)
