"""Process queries: the parent Snakemake run, whether a process is alive, resident memory."""

import resource
from contextlib import suppress
from pathlib import Path

import psutil


def parent_snakemake() -> psutil.Process | None:
    """Return the Snakemake process among the parents of this process, else None."""
    for one in psutil.Process().parents():
        with suppress(psutil.Error):
            if any(Path(word).stem == "snakemake" for word in one.cmdline()[:3]):
                return one
    return None


def is_alive(process: psutil.Process) -> bool:
    """Return whether the process is running and no zombie."""
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def resident_bytes(pid: int | None) -> int:
    """Return the resident memory of the process and its children; 0 once it has ended."""
    try:
        process = psutil.Process(pid)
        family = [process, *process.children(recursive=True)]
        return sum(member.memory_info().rss for member in family)
    except psutil.NoSuchProcess:
        return 0


def peak_rss_bytes() -> int:
    """Return the peak resident memory of this process or of one of its ended children."""
    who = (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    return max(resource.getrusage(one).ru_maxrss for one in who) * 1024
