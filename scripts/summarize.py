"""Write reports/summary.json and reports/summary.csv from all records."""

from tightrope.jobs.job import current_job
from tightrope.summary.summarize import summarize

job = current_job(globals())
summarize(
    engines=job.input.engines,
    latencies=job.input.latencies,
    accuracies=job.input.accuracies,
    traffic=job.input.traffic,
    audits=job.input.audits,
    sensitivities=job.input.sensitivities,
    searches=job.input.searches,
    training=job.input.training,
    checkpoints=job.input.checkpoints,
    data=job.input.data,
    json_target=job.output.json,
    csv_target=job.output.csv,
    activations=job.input.activations,
    races=job.input.races,
    references=job.params.references,
    unavailable=job.params.unavailable,
    baselines=job.params.baselines,
    budget_points=job.params.budget_points,
    accept_disturbed=job.params.accept_disturbed,
)
