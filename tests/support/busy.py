"""Work that keeps processors busy: of the caller, of its threads, of programs beside it."""

import hashlib
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from typing import Any

import psutil

PROCESSORS = sorted(os.sched_getaffinity(0))
# a few milliseconds of SHA-256, in which Python's lock is not held
WORK = bytes(4 << 20)
PROGRAM = """
import os, sys, time
os.sched_setaffinity(0, {int(sys.argv[1])})
print(os.getpid(), flush=True)
end = time.monotonic() + float(sys.argv[2])
while time.monotonic() < end:
    pass
"""


def wait(seconds: float) -> None:
    """Keep the processor busy: a sleep would end late."""
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        pass


def hashing(threads: int) -> Callable[[Any], Any]:
    """A `run` in which so many threads hash at once, while the caller sleeps."""
    pool = ThreadPoolExecutor(threads)
    return lambda work: list(
        pool.map(lambda _: hashlib.sha256(work).digest(), range(threads), timeout=60)
    )


def hash_forever() -> None:
    """A thread that stays busy in native code as long as this process lives."""

    def work() -> None:
        while True:
            hashlib.sha256(WORK).digest()

    threading.Thread(target=work, daemon=True).start()


@contextmanager
def busy_child(processor: int, seconds: float = 60.0) -> Iterator[psutil.Process]:
    """A child of this process, busy on that processor for so long or until the block ends."""
    words = [sys.executable, "-c", PROGRAM, str(processor), str(seconds)]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as program:
        program.stdout.readline()
        try:
            yield psutil.Process(program.pid)
        finally:
            program.kill()


def ends(pid: int, seconds: float = 10) -> bool:
    """Whether a process ends within so long; who has to fetch its exit code may take longer."""
    deadline = time.monotonic() + seconds
    with suppress(psutil.NoSuchProcess):
        while psutil.Process(pid).status() != psutil.STATUS_ZOMBIE:
            if time.monotonic() > deadline:
                return False
            time.sleep(0.02)
    return True
