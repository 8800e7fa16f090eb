"""Build one AOTInductor engine; for int8 it reads the calibration samples as well."""

from tightrope.engines.build import run_build
from tightrope.int8.calibrate import calibration_batches
from tightrope.jobs.job import current_job

run_build(current_job(globals()), read_samples=calibration_batches)
