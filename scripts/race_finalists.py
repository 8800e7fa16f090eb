"""Race the finalists of one model on one device, all in the same rounds."""

from tightrope.jobs.child import Limits
from tightrope.jobs.job import current_job
from tightrope.machine.cores import intra_op_threads
from tightrope.machine.host import require_host
from tightrope.measure.race.measure import race_finalists

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
