"""How a job runs: on which node, with which settings, and its one output or why it has none."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from tightrope.artifacts.content import BESIDE, read_artifact, write_artifact
from tightrope.artifacts.failures import failure_in, is_onnx_file, reason_of, write_failure
from tightrope.artifacts.files import sha256
from tightrope.artifacts.manifest import FOLDERS
from tightrope.errors import WorkFailed
from tightrope.jobs.child import Limits, failure, supervised
from tightrope.machine.cores import intra_op_threads
from tightrope.machine.host import REGISTRY, describe_host, name_in, named, require_host

# inputs of a job without which it only passes on why there are none
NEEDED = ("engine", "engines", "source", "small_engine", "large_engine")


def require_node(job: Any) -> None:
    """Raise TightropeError where this machine does not match the host key of the job.

    A job that only passes on a failure may run anywhere: when its node is lost, or there never was
    one of its kind, it runs where Snakemake does.
    """
    needed = [paths for name, paths in job.input.items() if name in NEEDED]
    fails = (all(map(failure_in, [one] if isinstance(one, str) else one)) for one in needed)
    if reason_of(job) is None and not any(fails):
        # where the outputs are: below the prefix of a module
        output = Path(next(path for _, path in job.output.items()))
        made = (above.parent for above in output.parents if above.name in FOLDERS)
        require_host(job.settings.host, next(made, Path()) / REGISTRY)


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
        threads = intra_op_threads(job.settings.threads)
        name = name_in(job.settings.host)
        return cls(threads, Limits.of(job), job.params.libraries, name)

    def host(self) -> dict[str, Any]:
        """Return this machine as a record has it, with the name of its kind if it has one."""
        return named(describe_host(), self.host_name)


def run_file_job(job: Any, failed: str, work: Callable[[], None]) -> None:
    """Run the `work` of a `tightrope.jobs.job.Job` in a child; it writes the only output.

    On failure the output holds `failed` (such as "not calibrated") and the reason. A failure in an
    input is copied unchanged, so that the reason names the step that failed. A transient failure
    raises TightropeError unless this is the last attempt.
    """
    ((_, target),) = job.output.items()
    known = ((path, one) for _, path in job.input.items() if (one := failure_in(path)) is not None)
    if found := next(known, None):
        if not is_onnx_file(found[0]):
            read_artifact(found[0])  # or its reason is not what was written
        write_failure(target, **found[1])
    else:
        limits = Limits.of(job)
        try:
            supervised(work, limits=limits)
        except WorkFailed as error:
            facts = failure(error, target, limits)
            reason = f"{failed}: {facts['reason']}"
            write_failure(target, reason=reason, transient=facts["transient"])
    if is_onnx_file(target):
        write_artifact(f"{target}{BESIDE}", {"sha256": sha256(target)})  # with what it was made of
