"""What the jobs that build an engine have in common."""

from collections.abc import Callable
from typing import Any

from tightrope.engines.build import build_engine
from tightrope.inputs.timing_batches import Arrays
from tightrope.jobs.child import Limits
from tightrope.machine.cores import intra_op_threads
from tightrope.machine.host import require_host


def run_build(job: Any, read_samples: Callable[..., list[Arrays]] | None = None) -> None:
    """Build the engine of a `tightrope.jobs.job.Job`, on a machine of the host key that it names.

    Inputs besides `source` are the paths that `read_samples` takes.
    """
    require_host(job.params.host)
    build_engine(
        job.params.variant,
        job.input.source,
        job.output.manifest,
        threads=intra_op_threads(job.params.threads),
        libraries=job.params.libraries,
        options=job.params.options,
        limits=Limits.of(job.resources),
        read_samples=read_samples,
        samples={name: path for name, path in job.input.items() if name != "source"},
    )
