"""Build one ONNX Runtime engine from the simplified or the quantized ONNX."""

from tightrope.cores import intra_op_threads
from tightrope.engine_folder import build_engine
from tightrope.host import require_host
from tightrope.job import current_job
from tightrope.supervise import Limits

job = current_job(globals())
require_host(job.params.host)
build_engine(
    job.params.variant,
    job.input.source,
    job.output.manifest,
    threads=intra_op_threads(job.params.threads),
    libraries=job.params.libraries,
    limits=Limits.of(job.resources),
)
