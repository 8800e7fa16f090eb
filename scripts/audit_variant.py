"""Audit a quantized engine for collapsed predictions before its latency is measured."""

from tightrope.artifacts.paths import Artifacts
from tightrope.jobs.execution import Execution
from tightrope.jobs.job import current_job
from tightrope.measure.audit import audit_variant

job = current_job(globals())
audit_variant(
    Artifacts.of(job.input),
    dict(job.input.items()).get("quantized"),
    job.output.audit,
    variant=job.wildcards.variant,
    max_sequence=job.params.max_sequence,
    execution=Execution.of(job),
)
