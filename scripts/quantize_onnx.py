"""Quantize an ONNX file to Q/DQ by one scheme, with a calibration cache."""

from tightrope.int8.quantize import found_by_search, quantize_onnx
from tightrope.jobs.execution import run_file_job
from tightrope.jobs.job import current_job

job = current_job(globals())
search = dict(job.input.items()).get("search")
run_file_job(
    job,
    "not quantized",
    lambda: quantize_onnx(
        job.input.onnx,
        job.input.calibration,
        job.output.onnx,
        scheme=job.wildcards.scheme,
        repair=found_by_search(search) if search else job.settings.repair,
        may_stay_in_float=search is not None,  # the engine then fails with that reason
    ),
)
