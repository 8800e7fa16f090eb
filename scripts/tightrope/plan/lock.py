"""One run at a time works in a folder: the kernel's lock on a file there, and Slurm's queue."""

import fcntl
import os
import platform
import re
import subprocess
import sys
from datetime import datetime
from pathlib import Path

import psutil

from tightrope.errors import TightropeError

LOCK = Path(".snakemake/run.lock")
SQUEUE = "squeue --me --noheader --format='%A|%j|%Z'"  # id, name and working directory
# how the name that a run of Snakemake gives to its jobs ends
NAME = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$")


def take_folder(*, slurm: bool) -> None:
    """Take the working directory until this process, and all that inherit the lock, have ended.

    Snakemake's own locks, which a killed run leaves, are removed. Raises TightropeError that names
    the run at work in the folder, or where jobs go to Slurm those of an earlier run.
    """
    LOCK.parent.mkdir(exist_ok=True)
    try:
        lock = os.open(LOCK, os.O_RDWR | os.O_CREAT, 0o666)
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        holder = LOCK.read_bytes()[:400].decode(errors="replace")
        raise taken(f"a run works here already ({holder})", "end that process there") from None
    except OSError:  # no locks in this file system, or another user's file: Snakemake's own decide
        return
    os.set_inheritable(lock, True)
    name_holder()
    if slurm and (jobs := " ".join(queued_jobs())):
        raise taken(f"Slurm jobs {jobs} of an earlier run work here", f"scancel {jobs}")
    for stale in LOCK.parent.glob("locks/*.lock"):
        stale.unlink()


def taken(why: str, how: str) -> TightropeError:
    """Return the error of a run that finds the folder taken, with how to free it."""
    return TightropeError(f"{Path.cwd()}: {why}; wait for the end, or {how}. Nothing was changed")


def name_holder() -> None:
    """Write into the file of the lock who this process is."""
    since = datetime.now().astimezone().isoformat(sep=" ", timespec="seconds")
    user, command = psutil.Process().username(), " ".join(["snakemake", *sys.argv[1:]])
    LOCK.write_text(f"{user}@{platform.node()}, process {os.getpid()}, since {since}: {command}")


def queued_jobs() -> list[str]:
    """Return the ids of jobs of runs in this folder; raise TightropeError without an answer."""
    # variables of squeue would change what it lists
    own = {name: text for name, text in os.environ.items() if not name.startswith("SQUEUE_")}
    done = subprocess.run(SQUEUE, shell=True, env=own, capture_output=True, text=True, check=False)
    if done.returncode:
        raise TightropeError(
            f"squeue: {' '.join(done.stderr.split())}; run this where Slurm answers, as on a login "
            "node, or without the profile"
        )
    jobs = [line.split("|", 2) for line in done.stdout.splitlines()]
    return [job for job, name, at in jobs if NAME.search(name) and Path(at).resolve() == Path.cwd()]
