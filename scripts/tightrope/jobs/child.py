"""Run work in a child process: a crash, hang or out-of-memory becomes a recorded failure.

Or spread independent work over several, in the same order and with the same results.
"""

import ctypes
import math
import multiprocessing
import os
import signal
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import psutil

from tightrope.artifacts.failures import reason_of
from tightrope.artifacts.files import SCRATCH, full_disk
from tightrope.errors import (
    ArtifactError,
    StorageError,
    TightropeError,
    WorkFailed,
    in_one_line,
    is_out_of_memory,
)
from tightrope.machine.counters import own_seconds
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
# time beyond its own limit in which a worker may finish its current call
GRACE_SECONDS = 10.0
# variable of the environment of the processes of a job of Slurm
SLURM_JOB = "SLURM_JOB_ID"
# errors of the environment, not of the variant: they end the job
PASSED_ON = (ArtifactError, StorageError)
PR_SET_PDEATHSIG = 1
Task = TypeVar("Task")
Answer = TypeVar("Answer")


def spread(
    work: Callable[[Task], Answer], tasks: Sequence[Task], *, processes: int
) -> Iterator[Answer]:
    """Yield `work(task)` for each task, in their order, from at most so many processes.

    They are forked, so the caller must have no other threads, and end with it. The error of the
    first task that fails is raised, and no more tasks are begun.
    """
    count = min(processes, len(tasks))
    if count < 2:
        yield from map(work, tasks)
        return
    context = multiprocessing.get_context("fork")
    with ProcessPoolExecutor(count, context, end_with, (os.getpid(),)) as pool:
        yield from pool.map(work, tasks)


@contextmanager
def beside(work: Callable[[], object], *, processes: int) -> Iterator[None]:
    """Do `work` in a fork of this process while the block runs, or after it in one process alone.

    The caller must have no other threads. Raises the error of `work` at the end.
    """
    if processes < 2:
        yield
        work()
        return
    context = multiprocessing.get_context("fork")
    answers, pipe = context.Pipe(duplex=False)
    parent = os.getpid()

    def send_error() -> None:
        end_with(parent)
        try:
            work()
        except Exception as error:
            pipe.send(error)
        else:
            pipe.send(None)

    child = context.Process(target=send_error)
    child.start()
    pipe.close()
    try:
        yield
        error = answers.recv()
    except EOFError as error:
        raise ChildProcessError("a process of this job ended before its work") from error
    finally:
        child.kill()
        child.join()
    if error is not None:
        raise error


def end_with(parent: int) -> None:
    """End this process with its parent, also where that is killed."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    if os.getppid() != parent:
        os._exit(1)


class Failed(NamedTuple):
    """Why the handler of a child failed, and whether another attempt may go well."""

    reason: str
    transient: bool


@dataclass(frozen=True)
class Limits:
    """Limits of a job: memory, time, whether this is its last attempt.

    `ended` is why an earlier process of this job was ended from outside: it then fails for this.
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


def seconds_since_start() -> float:
    """Return the seconds since this job of Slurm has begun on this machine, 0 without Slurm.

    That is the age of its oldest Snakemake. SLURM_JOB_START_TIME is by the clock of another
    machine, which may differ by hours.
    """
    job, ages = os.environ.get(SLURM_JOB), [0.0]
    # by the clock that nobody sets
    now, ticks_per_s = time.clock_gettime(time.CLOCK_BOOTTIME), os.sysconf("SC_CLK_TCK")
    for process in psutil.process_iter() if job is not None else ():
        with suppress(psutil.Error, OSError):
            words = process.cmdline()
            at_work = "--mode" in words and words[words.index("--mode") + 1 :][:1] == ["remote"]
            if at_work and process.environ().get(SLURM_JOB) == job:
                status = Path(f"/proc/{process.pid}/stat").read_bytes().rpartition(b")")[2]
                ages.append(now - int(status.split()[19]) / ticks_per_s)
    return max(ages)


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
            self.pipe.send(arguments)
            while not self.pipe.poll(POLL_SECONDS):
                self.check_limits()
                if time.monotonic() - began > seconds:
                    self.kill()
                    raise self.failed(f"timed out after {seconds:.0f} s", transient=True)
            value, error = self.pipe.recv()
        except (EOFError, BrokenPipeError, ConnectionResetError):
            raise self.ended_without_answer() from None
        if isinstance(error, Failed):
            raise self.failed(*error)
        if error is not None:
            raise error
        return value

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
        code = self.process.exitcode
        how = f"ended with exit code {code} and no answer"
        if code is not None and code < 0:
            how = f"killed by {signal.Signals(-code).name} (out of memory, or from outside)"
        return full_disk() or self.failed(how, transient=True)


def serve(
    handler: Callable[..., Any], there: Connection, pipe: Connection, parent: int, scratch: str
) -> None:
    """Answer requests in the child until the pipe closes, with temporary files in `scratch`."""
    there.close()
    # the environment variable is for C++ libraries and subprocesses
    os.environ["TMPDIR"] = tempfile.tempdir = scratch
    end_with(parent)
    while True:
        try:
            arguments = pipe.recv()
        except EOFError:
            return
        pipe.send(answer(handler, arguments))


def answer(
    handler: Callable[..., Any], arguments: tuple[Any, ...]
) -> tuple[Any, Failed | Exception | None]:
    """Return what the handler returned, and how it failed; an exception is to end the job."""
    try:
        return handler(*arguments), None
    except PASSED_ON as error:
        return None, error
    except MemoryError:
        return None, Failed("out of memory", True)
    except Exception as error:
        if (refused := full_disk(error)) is not None:
            return None, refused
        if isinstance(error, WorkFailed):
            return None, Failed(error.reason, error.transient)
        traceback.print_exc()
        return None, Failed(in_one_line(error), is_out_of_memory(error))


def supervised(work: Callable[..., Any], *arguments: Any, limits: Limits) -> Any:
    """Return `work(*arguments)`, run in a child process; raises as `Child.ask` does."""
    with Child(work, limits) as child:
        return child.ask(*arguments)


def run_or_stop(what: str, work: Callable[..., Any], *arguments: Any, limits: Limits) -> Any:
    """Return `work(*arguments)`, run in a child; raise failures as TightropeError naming `what`."""
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

    Raises TightropeError while the error is transient and another attempt is left.
    """
    try:
        fields = supervised(work, *arguments, limits=limits)
    except WorkFailed as error:
        return set_failure(record, error, record.variant, limits)
    for name, value in fields.items():
        setattr(record, name, value)


def cpu_seconds(workers: Sequence[Child]) -> float:
    """Return the CPU seconds that the workers and this process have used so far."""
    return own_seconds() + sum(worker.ask("cpu_seconds") for worker in workers)


def set_failure(record: Any, error: WorkFailed, what: str, limits: Limits) -> None:
    """Set the fields of `record` from the error, with what `failure` raises."""
    for name, value in failure(error, what, limits).items():
        setattr(record, name, value)


def failure(error: WorkFailed, what: str, limits: Limits) -> dict[str, Any]:
    """Return the error as fields of a record.

    Raises TightropeError instead while the error is transient and another attempt is left.
    """
    if error.transient and not limits.last_attempt and limits.ended is None:
        raise TightropeError(f"{what}: {error.reason}; another attempt follows")
    return {"status": "failed", "reason": error.reason, "transient": error.transient}
