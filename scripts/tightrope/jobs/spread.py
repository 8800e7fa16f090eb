"""Spread independent work over several processes, in the same order and with the same results."""

import ctypes
import multiprocessing
import os
import signal
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from typing import TypeVar

from tightrope.jobs.served import PR_SET_PDEATHSIG

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


def end_with(parent: int) -> None:
    """End this process with its parent, also where that is killed."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    if os.getppid() != parent:
        os._exit(1)
