"""Write the bundle of one variant: the engine, programs to use it, and what proves it."""

from functools import partial
from pathlib import Path

from tightrope.artifacts.manifest import Artifacts
from tightrope.bundle.subject import Paths
from tightrope.bundle.write import write_bundle
from tightrope.jobs.child import Limits, run_or_stop
from tightrope.jobs.job import current_job

job = current_job(globals())
work = partial(
    write_bundle,
    job.output.bundle,
    Paths(
        artifacts=Artifacts.of(job),
        latency=Path(job.input.latency),
        accuracy=Path(job.input.accuracy),
        summary=Path(job.input.summary),
    ),
    programs=[Path(path) for path in job.input.programs],
    template=Path(job.input.template),
    longest=job.settings.max_sequence,
)
run_or_stop(job.output.bundle, work, limits=Limits.of(job))
