"""Processes: the run of Snakemake above this one, what is alive, and how much memory it has."""

import resource
from contextlib import suppress
from pathlib import Path

import psutil


def run_above() -> psutil.Process | None:
    """The process of Snakemake for which this one works, None where there is none."""
    for one in psutil.Process().parents():
        with suppress(psutil.Error):
            if any(Path(word).stem == "snakemake" for word in one.cmdline()[:3]):
                return one
    return None


def works(process: psutil.Process) -> bool:
    """Whether the process is there and has not ended."""
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def resident_bytes(pid: int | None) -> int:
    """Resident memory of the process and its children; 0 once it has ended."""
    try:
        process = psutil.Process(pid)
        family = [process, *process.children(recursive=True)]
        return sum(member.memory_info().rss for member in family)
    except psutil.NoSuchProcess:
        return 0


def peak_rss_bytes() -> int:
    """The highest resident memory so far of this process or of one of its ended children."""
    who = (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    return max(resource.getrusage(one).ru_maxrss for one in who) * 1024
