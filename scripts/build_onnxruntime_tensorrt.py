"""Build one engine of ONNX Runtime's TensorRT provider from the simplified ONNX."""

from tightrope.engines.build import run_build
from tightrope.jobs.job import current_job

run_build(current_job(globals()))
