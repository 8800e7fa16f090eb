"""Whether a job's child is stuck because there is no room for its temporary files."""

import time
from contextlib import suppress

import psutil

from tightrope.artifacts.scratch import no_room
from tightrope.errors import StorageError

# how often a child is looked at, and the CPU seconds in between below which it only waits
EVERY_S, IDLE_S = 10.0, 0.05


class Stuck:
    """Looks now and then at a child whose temporary files are in the folder `scratch`.

    Where LLVM finds no room it calls `exit` amid its threads, which may then wait for each other
    forever.
    """

    def __init__(self, process: int, scratch: str) -> None:
        self.process, self.scratch = process, scratch
        self.used, self.next = 0.0, time.monotonic() + EVERY_S

    def error(self) -> StorageError | None:
        """Return why the child waits, None unless it waits and its folder takes no more."""
        if time.monotonic() < self.next:
            return None
        before, self.used = self.used, seconds_of(self.process)
        self.next = time.monotonic() + EVERY_S
        return no_room(self.scratch) if abs(self.used - before) < IDLE_S else None


def seconds_of(process: int) -> float:
    """Return the CPU seconds of a process, of what it has started and of what that has started."""
    found = 0.0
    with suppress(psutil.NoSuchProcess):
        own = psutil.Process(process)
        for one in [own, *own.children(recursive=True)]:
            with suppress(psutil.NoSuchProcess):
                found += sum(one.cpu_times()[:4])
    return found
