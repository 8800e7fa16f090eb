"""The sign that a job works in a folder: a shared lock on a file there, until the job has ended."""

import fcntl
import os
from contextlib import suppress
from pathlib import Path

JOBS_LOCK = Path(".snakemake/tightrope/jobs.lock")


def hold_job_lock(path: Path = JOBS_LOCK) -> int | None:
    """Lock the file, shared with other jobs, until this process and its forked children have ended.

    The next run needs the lock for itself for a moment, so it notices jobs of a killed one. Where
    there is no folder of Snakemake, or it cannot be written, the job goes on without. Where the
    file system has no such locks, the open file is the sign. Return its descriptor.
    """
    if not path.parent.parent.is_dir():
        return None
    with suppress(OSError):
        path.parent.mkdir(exist_ok=True)
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
        with suppress(OSError):
            fcntl.flock(descriptor, fcntl.LOCK_SH)
        return descriptor
    return None
