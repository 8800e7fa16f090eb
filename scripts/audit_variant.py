"""Look whether a quantized engine still answers, before its latency is measured."""

from tightrope.audit import audit_variant
from tightrope.cores import intra_op_threads
from tightrope.host import require_host
from tightrope.job import current_job
from tightrope.supervise import Limits

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
