"""Spread independent work over several processes, in the same order and with the same results."""

import ctypes
import multiprocessing
import os
import signal
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing.connection import Connection
from typing import TypeVar

PR_SET_PDEATHSIG = 1
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


@contextmanager
def beside(work: Callable[[], object], *, processes: int) -> Iterator[None]:
    """Do `work` in a fork of this process while the block runs, or after it in one process alone.

    The caller must have no other threads. Raises the error of `work` at the end.
    """
    if processes < 2:
        yield
        work()
        return
    context = multiprocessing.get_context("fork")
    answers, pipe = context.Pipe(duplex=False)
    child = context.Process(target=answer, args=(work, pipe, os.getpid()))
    child.start()
    pipe.close()
    try:
        yield
        error = answers.recv()
    except EOFError as error:
        raise ChildProcessError("a process of this job ended before its work") from error
    finally:
        child.kill()
        child.join()
    if error is not None:
        raise error


def answer(work: Callable[[], object], pipe: Connection, parent: int) -> None:
    """Send the error of `work`, None without one."""
    end_with(parent)
    try:
        work()
    except Exception as error:
        pipe.send(error)
    else:
        pipe.send(None)


def end_with(parent: int) -> None:
    """End this process with its parent, also where that is killed."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    if os.getppid() != parent:
        os._exit(1)
