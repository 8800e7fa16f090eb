"""Build one ONNX Runtime engine from the simplified or the quantized ONNX."""

from tightrope.engines.build import run_build
from tightrope.jobs.job import current_job

run_build(current_job(globals()))
