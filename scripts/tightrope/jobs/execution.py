"""Execution settings of a job that builds or runs an engine."""

from dataclasses import dataclass
from typing import Any, Self

from tightrope.jobs.child import Limits
from tightrope.machine.cores import intra_op_threads
from tightrope.machine.host import require_host


@dataclass(frozen=True)
class Execution:
    """Intra-op threads of an engine, limits of the job, installed versions of the libraries."""

    threads: int
    limits: Limits
    libraries: dict[str, str | None]

    @classmethod
    def of(cls, job: Any) -> Self:
        """Return the execution settings of a job, see `tightrope.jobs.job.current_job`.

        Raises TightropeError where this machine does not match the host key of the job.
        """
        require_host(job.params.host)
        threads = intra_op_threads(job.params.threads)
        return cls(threads, Limits.of(job), job.params.libraries)
