"""Run work in a child process: a crash, hang or out-of-memory becomes a recorded failure."""

import math
import multiprocessing
import os
import signal
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import psutil

from tightrope.artifacts.files import SCRATCH, full_disk
from tightrope.errors import TightropeError, WorkFailed
from tightrope.jobs.ended import reason_of
from tightrope.jobs.messages import Failed, Raised, Reply, Request
from tightrope.jobs.served import serve
from tightrope.jobs.since_start import seconds_since_start
from tightrope.machine.processes import exceeds_memory, is_alive, parent_snakemake

POLL_SECONDS = 0.5
REMEDY = (
    "raise its {} (set-resources of the profile, without one --set-resources) "
    "and say --config retry_failed=true"
)
LIMIT_OF_MEMORY = "GB of memory, the limit of this job"
# of a job's memory, what is left to Snakemake on the node: it has two processes in a Slurm job
RESERVED_MB = 450
# seconds before the scheduler's end of a job at which its own limit is, at most
RESERVED_SECONDS = 120


@dataclass(frozen=True)
class Limits:
    """Limits of a job: memory, time, whether this is its last attempt, and why it has ended.

    `ended` is the reason why an earlier process of this job was ended from outside; it is not tried
    again then, and fails for this reason.
    """

    memory_bytes: float
    seconds: float
    last_attempt: bool = True
    ended: str | None = None

    @classmethod
    def of(cls, job: Any) -> "Limits":
        """Return the limits of a job, see `tightrope.jobs.job.current_job`.

        They lie below its `mem_mb` and `runtime` (minutes), so that the job notices before a
        scheduler ends it: a tenth and at least RESERVED_MB, a tenth and at most RESERVED_SECONDS.
        Time counts from the start of the job where it is one of Slurm, else from now.
        """
        memory, seconds = float(job.resources.mem_mb), 60.0 * job.resources.runtime
        return cls(
            memory_bytes=1e6 * max(memory - max(0.1 * memory, RESERVED_MB), memory / 2),
            seconds=seconds - min(0.1 * seconds, RESERVED_SECONDS) - seconds_since_start(),
            last_attempt=bool(getattr(job.resources, "last_attempt", True)),
            ended=reason_of(job),
        )


class Child:
    """A forked process that answers requests with `handler(*arguments)`; a context manager.

    It dies with its parent, and sleeps on its pipe between requests. Its temporary files are in a
    folder that this class deletes: a killed child deletes none, and a runtime may unpack a whole
    model there. `role` prefixes the reason of each failure. The time limit counts from `began`
    (`time.monotonic()`), or from now. Raises WorkFailed for a job that has `ended` before.
    """

    def __init__(
        self,
        handler: Callable[..., Any],
        limits: Limits,
        role: str = "",
        began: float | None = None,
    ) -> None:
        if limits.ended is not None:
            raise WorkFailed(limits.ended, transient=True)
        context = multiprocessing.get_context("fork")
        self.role = role
        self.limits = limits
        self.deadline = (time.monotonic() if began is None else began) + limits.seconds
        self.run = parent_snakemake()
        self.scratch = tempfile.TemporaryDirectory(prefix=SCRATCH, ignore_cleanup_errors=True)
        self.pipe, there = context.Pipe()
        arguments = (handler, self.pipe, there, os.getpid(), self.scratch.name)
        self.process = context.Process(target=serve, args=arguments)
        self.process.start()
        there.close()

    def __enter__(self) -> "Child":
        return self

    def __exit__(self, *_: Any) -> None:
        self.kill()
        self.process.join()
        self.pipe.close()
        self.scratch.cleanup()

    def ask(self, *arguments: Any, seconds: float = math.inf) -> Any:
        """Return what the handler returns for `arguments`, waiting at most `seconds`.

        Raises WorkFailed when the handler raised, the child died or exceeded its limits. An
        ArtifactError or StorageError of the handler is raised unchanged. Raises TightropeError when
        the Snakemake run has ended.
        """
        began = time.monotonic()
        # here too: requests that are answered within POLL_SECONDS would never reach the limit
        self.check_deadline()
        try:
            self.pipe.send(Request(arguments))
            while not self.pipe.poll(POLL_SECONDS):
                self.check_limits()
                if time.monotonic() - began > seconds:
                    self.kill()
                    raise self.failed(f"timed out after {seconds:.0f} s", transient=True)
            reply: Reply = self.pipe.recv()
        except (EOFError, BrokenPipeError, ConnectionResetError):
            raise self.ended_without_answer() from None
        if isinstance(reply, Failed):
            raise self.failed(reply.reason, reply.transient)
        if isinstance(reply, Raised):
            raise reply.error
        return reply.value

    def kill(self) -> None:
        """Kill the child and its subprocesses, such as compilers, which would continue."""
        if not self.process.is_alive():
            return
        with suppress(psutil.NoSuchProcess):
            started = psutil.Process(self.process.pid).children(recursive=True)
            self.process.kill()
            for one in started:
                with suppress(psutil.NoSuchProcess):
                    one.kill()

    def failed(self, reason: str, transient: bool) -> WorkFailed:
        """Return the WorkFailed of this child for `reason`."""
        return WorkFailed(reason, transient, self.role)

    def check_limits(self) -> None:
        """Kill the child and raise when it exceeds its limits or its Snakemake run has ended.

        A killed Snakemake leaves its jobs running; the next run may be building in the same folder.
        """
        if self.run is not None and not is_alive(self.run):
            self.kill()
            raise TightropeError("the run of Snakemake that asked for this has ended")
        self.check_deadline()
        if exceeds_memory(self.process.pid, self.limits.memory_bytes):
            self.kill()
            size = self.limits.memory_bytes / 1e9
            reason = f"killed above {size:.1f} {LIMIT_OF_MEMORY}"
            raise self.failed(f"{reason}; {REMEDY.format('mem_mb')}", transient=True)

    def check_deadline(self) -> None:
        """Kill the child and raise when its time is over."""
        if time.monotonic() > self.deadline:
            self.kill()
            reason = f"killed after {self.limits.seconds:.0f} s, the limit of this job"
            raise self.failed(f"{reason}; {REMEDY.format('runtime')}", transient=True)

    def ended_without_answer(self) -> Exception:
        """Return the error of a child that gave no answer: a StorageError without room for it.

        A file that is mapped into memory then ends the process by a signal.
        """
        self.process.join()
        return full_disk() or self.failed(self.how_it_ended(), transient=True)

    def how_it_ended(self) -> str:
        """Return how a child that gave no answer ended."""
        code = self.process.exitcode
        if code is not None and code < 0:
            return f"killed by {signal.Signals(-code).name} (out of memory, or from outside)"
        return f"ended with exit code {code} and no answer"


def supervised(work: Callable[..., Any], *arguments: Any, limits: Limits) -> Any:
    """Return `work(*arguments)`, run in a child process; raises as `Child.ask` does."""
    with Child(work, limits) as child:
        return child.ask(*arguments)


def run_or_stop(what: str, work: Callable[..., Any], *arguments: Any, limits: Limits) -> Any:
    """Return `work(*arguments)`, run in a child process, of a step that its model needs.

    Raises a TightropeError of the work unchanged, and any other failure as one that names `what`.
    """
    try:
        value, error = supervised(catch_expected_errors(work), *arguments, limits=limits)
    except WorkFailed as failed:
        raise TightropeError(f"{what}: {failed.reason}") from None
    if error is not None:
        raise error
    return value


def catch_expected_errors(
    work: Callable[..., Any],
) -> Callable[..., tuple[Any, TightropeError | None]]:
    """Wrap `work` to return its expected error as a second value instead of failing the child."""

    def run(*arguments: Any) -> tuple[Any, TightropeError | None]:
        try:
            return work(*arguments), None
        except TightropeError as error:
            return None, error

    return run


def fill_in(record: Any, work: Callable[..., Any], *arguments: Any, limits: Limits) -> None:
    """Set the fields of `record` from `work(*arguments)` in a child, or from its failure.

    Raises as `failure` does.
    """
    try:
        fields = supervised(work, *arguments, limits=limits)
    except WorkFailed as error:
        return set_failure(record, error, record.variant, limits)
    for name, value in fields.items():
        setattr(record, name, value)


def set_failure(record: Any, error: WorkFailed, what: str, limits: Limits) -> None:
    """Set the fields of `record` from the error; raises as `failure` does."""
    for name, value in failure(error, what, limits).items():
        setattr(record, name, value)


def failure(error: WorkFailed, what: str, limits: Limits) -> dict[str, Any]:
    """Return the error as fields of a record.

    Raises TightropeError instead while the error is transient and another attempt is left.
    """
    if error.transient and not limits.last_attempt and limits.ended is None:
        raise TightropeError(f"{what}: {error.reason}; another attempt follows")
    return {"status": "failed", "reason": error.reason, "transient": error.transient}
