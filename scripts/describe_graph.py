"""Describe the layers of an ONNX file, and write it without weights for Netron."""

from tightrope.jobs.child import Limits
from tightrope.jobs.job import current_job
from tightrope.report.graphs.describe import describe_graph

job = current_job(globals())
describe_graph(
    job.input.onnx,
    dict(job.input.items()).get("costs"),
    job.output.record,
    job.output.structure,
    title=f"{job.wildcards.model} {job.wildcards.graph}",
    limits=Limits.of(job),
)
