"""What the kernel counts of a process and its processors: who else ran, which threads worked."""

import os
import resource
import threading
import time
from pathlib import Path
from typing import NamedTuple

import psutil

TASKS = Path("/proc/self/task")
STATISTICS = Path("/proc/stat")
STEAL = 8  # the field of a cpu line that counts time taken by the hypervisor, see proc(5)
TICKS = os.sysconf("SC_CLK_TCK")
NANO = 1e-9
# of a thread that ended after its folder was listed, before or after its file was opened
ENDED = (FileNotFoundError, ProcessLookupError)


class Counters(NamedTuple):
    """Counted for this process since it began; two of them give what happened in between.

    `threads`: CPU seconds of each thread by its id. `waited_s`: seconds in which its threads were
    ready to run but had no processor, summed; None where the kernel does not say.
    `preempted`: involuntary context switches. `stolen_s`: seconds that the hypervisor took from
    the processors that the process may use.
    """

    threads: dict[int, float]
    waited_s: float | None
    preempted: int
    stolen_s: float

    def since(self, before: "Counters") -> "Counters":
        """The difference; a thread that has ended in between is left out."""
        known = self.waited_s is not None and before.waited_s is not None
        return Counters(
            {name: used - before.threads.get(name, 0.0) for name, used in self.threads.items()},
            self.waited_s - before.waited_s if known else None,
            self.preempted - before.preempted,
            self.stolen_s - before.stolen_s,
        )


def counters() -> Counters:
    """The counters of this process now."""
    threads, waited = thread_times()
    preempted = resource.getrusage(resource.RUSAGE_SELF).ru_nivcsw
    return Counters(threads, waited, preempted, stolen_seconds(os.sched_getaffinity(0)))


def thread_times() -> tuple[dict[int, float], float | None]:
    """CPU seconds by thread, and seconds of all of them spent waiting for a processor.

    From schedstat, in nanoseconds (Documentation/scheduler/sched-stats.rst of the kernel); where
    there is none, CPU seconds in ticks of the clock, and None.
    """
    used: dict[int, float] = {}
    waited = 0.0
    for task in TASKS.iterdir():
        try:
            ran, waiting, _ = (task / "schedstat").read_text().split()
        except ENDED:
            continue
        except ValueError:
            break
        used[int(task.name)] = int(ran) * NANO
        waited += int(waiting) * NANO
    if used:
        return used, waited
    times = psutil.Process().threads()
    return {thread.id: thread.user_time + thread.system_time for thread in times}, None


def stolen_seconds(processors: set[int]) -> float:
    """Seconds that a hypervisor has taken from these processors; in ticks of 10 ms mostly."""
    lines = (line.split() for line in STATISTICS.read_text().splitlines())
    names = {f"cpu{number}" for number in processors}
    return sum(int(line[STEAL]) for line in lines if line[0] in names) / TICKS


def settle(limit_seconds: float = 0.1, step_seconds: float = 0.0005) -> None:
    """Sleep until the other threads of this process sleep too, at most so long.

    OpenMP pools spin for some milliseconds after a call; whoever is timed next would lose a core.
    """
    end = time.perf_counter() + limit_seconds
    while time.perf_counter() < end and any_other_thread_runs():
        time.sleep(step_seconds)


def any_other_thread_runs() -> bool:
    """Whether a thread of this process besides the calling one is running or ready to run."""
    own = str(threading.get_native_id())
    for task in TASKS.iterdir():
        try:
            state = (task / "stat").read_text().rpartition(")")[2].split()[0]
        except ENDED:
            continue
        if state == "R" and task.name != own:
            return True
    return False


class OtherPrograms:
    """How many cores programs other than this one and its children keep busy, from now on."""

    def __init__(self) -> None:
        self.began = time.monotonic()
        self.busy, self.ours = busy_seconds(), family_seconds()

    def cores(self) -> float:
        """Cores that the others kept busy since then, on average; 0 or more."""
        elapsed = time.monotonic() - self.began
        others = busy_seconds() - self.busy - (family_seconds() - self.ours)
        return max(0.0, others / elapsed) if elapsed > 0 else 0.0


def busy_seconds() -> float:
    """Seconds that all processors of the machine have been busy, summed."""
    times = psutil.cpu_times()
    return times.user + times.nice + times.system + times.irq + times.softirq


def family_seconds() -> float:
    """CPU seconds of this process and of its children, those that have ended included."""
    total = sum(os.times()[:4])
    for child in psutil.Process().children():
        try:
            total += sum(child.cpu_times()[:4])
        except psutil.NoSuchProcess:
            continue
    return total
