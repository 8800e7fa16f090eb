"""A folder for one run alone: no other run holds it, and no job of a killed run works in it."""

import fcntl
import os
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

import psutil

from tightrope.errors import TightropeError
from tightrope.jobs.job_lock import JOBS_LOCK
from tightrope.plan.lease import SNAKEMAKE, Lease, take_lease
from tightrope.plan.slurm_queue import queued_jobs

# where the executor for Slurm keeps its logs, so that there is such a folder after each such run
SLURM_LOGS = SNAKEMAKE / "slurm_logs"
# a job ends by itself within seconds of its run, where it notices that the run has ended
GRACE_SECONDS = 10.0
POLL_SECONDS = 0.2
# each question is a remote procedure call that the scheduler answers
SLURM_POLL_SECONDS = 3.0
Found = TypeVar("Found", bool, list[str])


def take_folder(*, slurm: bool = False) -> Lease:
    """Return the lease of the working directory once no job of an earlier run is left in it.

    `slurm` says that the jobs of this run go there. Raises TightropeError, which names who is at
    work and how to end it, and StorageError.
    """
    lease = take_lease()
    if lease.owned:
        try:
            # first: a job of Slurm also holds the lock of jobs, where its node shares locks
            require_no_slurm_jobs(slurm=slurm)
            require_no_jobs()
        except BaseException:
            lease.release()
            raise
    return lease


def require_no_jobs(path: Path = JOBS_LOCK, *, seconds: float = GRACE_SECONDS) -> None:
    """Wait so many seconds at most until no job holds the lock of jobs.

    Raises TightropeError with the processes that are still at work.
    """
    if not remaining(lambda: jobs_at_work(path), seconds, POLL_SECONDS):
        return
    pids = processes_with(path)
    if pids:
        ids = " ".join(map(str, pids))
        what = f"{ids}; wait until they have ended, or end them with: kill {ids}"
    else:
        what = "of another host or user; wait until they have ended, or end them there"
    raise still_at_work(f"processes {what}")


def require_no_slurm_jobs(*, slurm: bool, seconds: float = GRACE_SECONDS) -> None:
    """Wait so many seconds at most until Slurm has no job of this folder.

    Where neither this run uses Slurm nor an earlier one did, it is not asked. Raises TightropeError
    with the jobs that are left, or where Slurm does not answer and this run needs it.
    """
    if not slurm and not SLURM_LOGS.is_dir():
        return
    try:
        jobs = remaining(lambda: queued_jobs(Path.cwd()), seconds, SLURM_POLL_SECONDS)
    except TightropeError:
        if slurm:
            raise
        return
    if jobs:
        ids = " ".join(jobs)
        raise still_at_work(f"Slurm jobs {ids}; wait until they have ended, or: scancel {ids}")


def still_at_work(what: str) -> TightropeError:
    """Return the error of a run that finds jobs of an earlier one."""
    return TightropeError(
        f"{Path.cwd()}: jobs of an earlier run still work in this folder: {what}. Nothing was "
        "changed"
    )


def remaining(find: Callable[[], Found], seconds: float, every: float) -> Found:
    """Return what `find` returns when it finds nothing, or last within so many seconds."""
    deadline = time.monotonic() + seconds
    while (found := find()) and time.monotonic() < deadline:
        time.sleep(every)
    return found


def jobs_at_work(path: Path) -> bool:
    """Return whether a process holds the lock of jobs, or has the file open where none can lock."""
    try:
        descriptor = os.open(path, os.O_RDWR)
    except FileNotFoundError:
        return False
    except OSError:  # another user's file
        return bool(processes_with(path))
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return bool(set(processes_with(path)) - {os.getpid()})
    finally:
        os.close(descriptor)
    return False


def processes_with(path: Path) -> list[int]:
    """Return the ids of the processes of this host that have the file open, as far as visible."""
    file, found = str(path.resolve()), []
    for process in psutil.process_iter():
        with suppress(psutil.Error, OSError):
            if any(one.path == file for one in process.open_files()):
                found.append(process.pid)
    return found
