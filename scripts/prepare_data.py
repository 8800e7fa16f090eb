"""Read the data of a model, and write its distinct examples in their order."""

from functools import partial

from tightrope.data.prepare import prepare_data
from tightrope.data.splits import POOL, sizes_of
from tightrope.jobs.child import Limits, run_or_stop
from tightrope.jobs.job import current_job
from tightrope.signature import IMAGE

job = current_job(globals())
prepare = partial(
    prepare_data,
    job.output.manifest,
    source=job.settings.data,
    columns=job.settings.columns,
    sizes=sizes_of(job.resources),
    limits=job.settings.limits,
    seed=job.settings.seed,
    task=job.settings.task,
    images=job.settings.images,
)
image = "without image or label, or no images by their names"
reasons = {
    "empty": image if job.settings.task == IMAGE else "without text or label",
    "equal": "equal to another",
    "contradictory": "with two labels",
    "in_evaluation": "of evaluation too",
}
counts = run_or_stop(job.settings.data, prepare, limits=Limits.of(job))
for part, found in counts.items():
    if words := [f"{found[name]} {why}" for name, why in reasons.items() if found[name]]:
        rows = f"{found['rows']} rows" + f" of {part}" * (part != POOL)
        print(f"{job.settings.data}: {rows}, left out are {', '.join(words)}", file=job.terminal)
