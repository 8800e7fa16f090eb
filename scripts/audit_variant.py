"""Look whether a quantized engine still answers, before its latency is measured."""

from tightrope.jobs.child import Limits
from tightrope.jobs.job import current_job
from tightrope.machine.cores import intra_op_threads
from tightrope.machine.host import require_host
from tightrope.measure.audit import audit_variant

job = current_job(globals())
require_host(job.params.host)
audit_variant(
    job.input.engine,
    job.input.onnx,
    dict(job.input.items()).get("quantized"),
    job.input.checkpoint,
    job.input.data,
    job.output.audit,
    variant=job.wildcards.variant,
    max_sequence=job.params.max_sequence,
    threads=intra_op_threads(job.params.threads),
    limits=Limits.of(job.resources),
)
