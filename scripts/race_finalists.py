"""Race the finalists of one model on one device, timed in the same rounds."""

from tightrope.jobs.execution import Execution
from tightrope.jobs.job import current_job
from tightrope.measure.race.measure import race_finalists

job = current_job(globals())
race_finalists(
    job.input.engines,
    job.input.latencies,
    job.input.accuracies,
    job.output.record,
    checkpoint=job.input.checkpoint,
    data=job.input.data,
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
    execution=Execution.of(job),
    terminal=job.terminal,
)
