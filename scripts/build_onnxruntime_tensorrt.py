"""Build one engine of ONNX Runtime's TensorRT provider from the simplified ONNX."""

from tightrope.build_job import run_build
from tightrope.job import current_job

run_build(current_job(globals()))
