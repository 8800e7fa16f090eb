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


def family() -> set[int]:
    """Return the ids of this process, its parents, and all descendants of its direct parent."""
    own = psutil.Process()
    parents = own.parents()
    started = parents[0].children(recursive=True) if parents else []
    return {own.pid, *(one.pid for one in [*parents, *started])}


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


def exceeds_memory(pid: int | None, limit_bytes: float) -> bool:
    """Return whether the process and its children hold more memory; False once it has ended.

    A page that several of them share counts once. Resident memory, which counts it several times,
    is read first: it costs microseconds, and the other walks all page tables.
    """
    try:
        process = psutil.Process(pid)
        family = [process, *process.children(recursive=True)]
        if sum(member.memory_info().rss for member in family) <= limit_bytes:
            return False
        return sum(map(proportional_bytes, family)) > limit_bytes
    except psutil.NoSuchProcess:
        return False


def proportional_bytes(process: psutil.Process) -> int:
    """Return the resident memory of a process, with its part of each page that it shares.

    That is the proportional set size of Linux (proc_pid_smaps(5)); the resident memory where the
    kernel does not say it, as of a process of another user, or built without smaps.
    """
    try:
        return int(process.memory_full_info().pss)
    except (AttributeError, psutil.AccessDenied, OSError):
        return int(process.memory_info().rss)


def peak_rss_bytes() -> int:
    """Return the peak resident memory of this process or of one of its ended children."""
    who = (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    return max(resource.getrusage(one).ru_maxrss for one in who) * 1024
