"""Race the finalists of one model on one device, all in the same rounds."""

from tightrope.cores import intra_op_threads
from tightrope.host import require_host
from tightrope.job import current_job
from tightrope.race_finalists import race_finalists
from tightrope.supervise import Limits

job = current_job(globals())
require_host(job.params.host)
race_finalists(
    job.input.engines,
    job.input.latencies,
    job.input.accuracies,
    job.input.checkpoint,
    job.input.data,
    job.output.record,
    model=job.wildcards.model,
    device=job.wildcards.device,
    baseline=job.params.baseline,
    shapes=job.params.shapes,
    plan=job.params.latency,
    quiet_seconds=job.resources.quiet_seconds,
    decision=job.params.decision,
    budget=job.params.budget_points / 100,
    accept_disturbed=job.params.accept_disturbed,
    max_sequence=job.params.max_sequence,
    threads=intra_op_threads(job.params.threads),
    libraries=job.params.libraries,
    limits=Limits.of(job.resources),
    terminal=job.terminal,
)
