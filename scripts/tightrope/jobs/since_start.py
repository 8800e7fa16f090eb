"""How long a job of a scheduler has run, by the clock of its own machine alone."""

import os
import time
from contextlib import suppress
from pathlib import Path

import psutil

# variable of the environment of the processes of a job of Slurm
SLURM_JOB = "SLURM_JOB_ID"


def seconds_since_start() -> float:
    """Return the seconds since this job of Slurm has begun on this machine, 0 without Slurm.

    That is the age of its oldest Snakemake. SLURM_JOB_START_TIME is by the clock of another
    machine, which may differ by hours.
    """
    job = os.environ.get(SLURM_JOB)
    if job is None:
        return 0.0
    own = (one for one in psutil.process_iter() if is_snakemake_of(job, one))
    return max(map(age_of, own), default=0.0)


def is_snakemake_of(job: str, process: psutil.Process) -> bool:
    """Return whether the process is Snakemake at work in that job of Slurm."""
    with suppress(psutil.Error, OSError):
        words = process.cmdline()
        at_work = "--mode" in words and words[words.index("--mode") + 1 :][:1] == ["remote"]
        return at_work and process.environ().get(SLURM_JOB) == job
    return False


def age_of(process: psutil.Process) -> float:
    """Return the seconds since the process was started, by the clock that nobody sets."""
    with suppress(OSError):
        ticks = int(Path(f"/proc/{process.pid}/stat").read_bytes().rpartition(b")")[2].split()[19])
        return time.clock_gettime(time.CLOCK_BOOTTIME) - ticks / os.sysconf("SC_CLK_TCK")
    return 0.0
