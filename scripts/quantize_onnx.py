"""Write the Q/DQ ONNX of one scheme from a calibration cache."""

from tightrope.job import current_job
from tightrope.quantize import operators_in_float, quantize_onnx

job = current_job(globals())
quantize_onnx(
    job.input.onnx,
    job.input.calibration,
    job.output.onnx,
    scheme=job.wildcards.scheme,
    repair=job.params.repair,
    in_float=operators_in_float(dict(job.input.items()).get("search")),
)
