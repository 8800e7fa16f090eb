"""Processes: the parent Snakemake run, whether one is alive, its memory, and how they end."""

import ctypes
import resource
from contextlib import suppress
from pathlib import Path

import psutil

PR_SET_CHILD_SUBREAPER = 36


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


def adopt_orphans() -> None:
    """Make this process the parent of descendants whose parent ends, so that it can end them."""
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1)


def end_children(*, kill: bool) -> None:
    """Send SIGTERM to the children of this process, or SIGKILL to all its descendants."""
    for one in psutil.Process().children(recursive=kill):
        with suppress(psutil.Error):
            one.kill() if kill else one.terminate()


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
