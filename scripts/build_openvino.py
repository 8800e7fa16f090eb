"""Build one OpenVINO engine; NNCF's int8 reads the calibration samples as well."""

from tightrope.calibration import calibration_batches
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
    read_samples=calibration_batches,
    samples={name: path for name, path in job.input.items() if name != "source"},
)
