"""Execution settings of a job that builds or runs an engine."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from tightrope.artifacts.failures import failure_in, reason_of
from tightrope.artifacts.paths import FOLDERS
from tightrope.jobs.child import Limits
from tightrope.machine.cores import intra_op_threads
from tightrope.machine.host import REGISTRY, describe_host, name_in, named, require_host

# inputs of a job without which it only passes on why there are none
NEEDED = ("engine", "engines", "source", "small_engine", "large_engine")


def require_node(job: Any) -> None:
    """Raise TightropeError where this machine does not match the host key of the job.

    A job that only passes on a failure may run anywhere: when its node is lost, or there never was
    one of its kind, it runs where Snakemake does.
    """
    if not fails_anyway(job):
        # where the outputs are: below the prefix of a module
        output = Path(next(path for _, path in job.output.items()))
        made = (above.parent for above in output.parents if above.name in FOLDERS)
        require_host(job.params.host, next(made, Path()) / REGISTRY)


def fails_anyway(job: Any) -> bool:
    """Return whether a job has ended before, or what it needs holds a failure: of engines all."""
    if reason_of(job) is not None:
        return True
    needed = [paths for name, paths in job.input.items() if name in NEEDED]
    return any(all(map(failure_in, [one] if isinstance(one, str) else one)) for one in needed)


@dataclass(frozen=True)
class Execution:
    """Intra-op threads of an engine, limits of the job, versions of libraries, kind of node."""

    threads: int
    limits: Limits
    libraries: dict[str, str | None]
    host_name: str | None = None

    @classmethod
    def of(cls, job: Any) -> Self:
        """Return the execution settings of a job, see `tightrope.jobs.job.current_job`.

        Raises TightropeError where this machine does not match the host key of the job.
        """
        require_node(job)
        threads = intra_op_threads(job.params.threads)
        name = name_in(job.params.host)
        return cls(threads, Limits.of(job), job.params.libraries, name)

    def host(self) -> dict[str, Any]:
        """Return this machine as a record has it, with the name of its kind if it has one."""
        return named(describe_host(), self.host_name)
