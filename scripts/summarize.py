"""Put every record into reports/summary.json and reports/summary.csv."""

from tightrope.jobs.job import current_job
from tightrope.summary.summarize import summarize

job = current_job(globals())
summarize(
    job.input.engines,
    job.input.latencies,
    job.input.accuracies,
    job.input.traffic,
    job.input.audits,
    job.input.sensitivities,
    job.input.searches,
    job.input.training,
    job.input.checkpoints,
    job.input.data,
    job.output.json,
    job.output.csv,
    activations=job.input.activations,
    races=job.input.races,
    references=job.params.references,
    unavailable=job.params.unavailable,
    baselines=job.params.baselines,
    budget_points=job.params.budget_points,
    accept_disturbed=job.params.accept_disturbed,
)
