"""Slurm jobs that a run of Snakemake in a folder has submitted."""

import os
import re
import shutil
import subprocess
from pathlib import Path

from tightrope.errors import TightropeError

# a run of Snakemake gives its jobs one name: a prefix of the profile, and a number of its own
NAME = re.compile(r"(?:[A-Za-z0-9_-]+_)?[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
# id, name and working directory, which may contain any character
SQUEUE = ("squeue", "--me", "--noheader", "--format=%A|%j|%Z")
TIMEOUT_SECONDS = 60


def queued_jobs(folder: Path) -> list[str]:
    """Return the ids of this user's waiting and running jobs of `folder`; [] without Slurm.

    Raises TightropeError where Slurm does not answer.
    """
    # variables of squeue would change what it lists
    environment = {name: text for name, text in os.environ.items() if name[:7] != "SQUEUE_"}
    try:
        done = subprocess.run(
            SQUEUE,
            env=environment,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=TIMEOUT_SECONDS,
            check=True,
        )
    except FileNotFoundError:
        return []
    except subprocess.CalledProcessError as error:
        raise unanswered(" ".join(error.stderr.split())[:300]) from None
    except subprocess.TimeoutExpired:
        raise unanswered(f"no answer in {TIMEOUT_SECONDS} s") from None
    return jobs_of(folder, done.stdout)


def jobs_of(folder: Path, lines: str) -> list[str]:
    """Return the ids of the jobs of `folder` in the output of SQUEUE, each once.

    The job in which this process runs is not among them.
    """
    here, ids = os.path.realpath(folder), []
    for line in lines.splitlines():
        job, _, rest = line.strip().partition("|")
        name, _, directory = rest.partition("|")
        if NAME.fullmatch(name) and os.path.realpath(directory) == here and job.isdecimal():
            ids.append(job)
    return [job for job in dict.fromkeys(ids) if job != os.environ.get("SLURM_JOB_ID")]


def unanswered(reason: str) -> TightropeError:
    """Return the error of a queue that cannot be read."""
    return TightropeError(
        f"squeue: {reason or 'failed'}; jobs of an earlier run may still work in this folder: run "
        "again when Slurm answers"
    )


def require_slurm() -> None:
    """Raise TightropeError where no job can be submitted from here."""
    if shutil.which("sbatch") is None:
        raise TightropeError(
            "sbatch is not on PATH: Slurm is not installed here; run this where jobs are "
            "submitted, on a login node, or without the profile"
        )
