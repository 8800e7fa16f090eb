"""Counters of this process, its processors and a GPU: CPU time, waiting, preemption, idle time.

And their energy: the joules of a stretch of time.
"""

import os
import resource
import threading
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, NamedTuple

import psutil

from tightrope.machine.nvml import known

TASKS = Path("/proc/self/task")
STATISTICS = Path("/proc/stat")
# fields of a cpu line, see proc(5): idle and iowait; steal
IDLE, STEAL = (4, 5), (8,)
TICKS = os.sysconf("SC_CLK_TCK")
NANO = 1e-9
# errors for a thread that ended before or after its file was opened
ENDED = (FileNotFoundError, ProcessLookupError)
POWERCAP = Path("/sys/class/powercap")
MICRO, MILLI = 1e-6, 1e-3
# NVML updates the counter of a GPU every 20 to 100 ms, so a block of 25 ms would often see no
# energy, or that of the blocks of other engines before it
GPU_SECONDS = 1.0


class Counters(NamedTuple):
    """Kernel counters of this process since it started; `since` gives the difference of two.

    `threads`: CPU seconds of each thread by its id. `waited_s`: seconds in which threads were
    runnable but had no processor, summed over threads; None where the kernel does not report it.
    `preempted`: involuntary context switches. `stolen_s`: seconds that the hypervisor took from
    the processors that the process may use.
    """

    threads: dict[int, float]
    waited_s: float | None
    preempted: int
    stolen_s: float

    def since(self, before: "Counters") -> "Counters":
        """Return the difference from `before`; threads that have ended meanwhile are left out."""
        return Counters(
            {name: used - before.threads.get(name, 0.0) for name, used in self.threads.items()},
            None
            if self.waited_s is None or before.waited_s is None
            else self.waited_s - before.waited_s,
            self.preempted - before.preempted,
            self.stolen_s - before.stolen_s,
        )


def counters() -> Counters:
    """Read the counters of this process."""
    threads, waited = thread_times()
    preempted = resource.getrusage(resource.RUSAGE_SELF).ru_nivcsw
    return Counters(threads, waited, preempted, counted_seconds(os.sched_getaffinity(0), STEAL))


def thread_times() -> tuple[dict[int, float], float | None]:
    """Return CPU seconds per thread, and the seconds that all threads waited for a processor.

    Read from schedstat, in nanoseconds (Documentation/scheduler/sched-stats.rst of the kernel).
    Without schedstat: CPU seconds in clock ticks, and None.
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


def own_seconds() -> float:
    """Return the CPU seconds of this process and of its ended children."""
    ended = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + ended.ru_utime + ended.ru_stime


def counted_seconds(processors: Iterable[int], fields: tuple[int, ...]) -> float:
    """Return the sum of these fields of /proc/stat over these processors, in seconds since boot.

    Usually in ticks of 10 ms.
    """
    names = {f"cpu{number}" for number in processors}
    lines = (line.split() for line in STATISTICS.read_text().splitlines())
    return sum(int(line[field]) for line in lines if line[0] in names for field in fields) / TICKS


def settle(limit_seconds: float = 0.1, step_seconds: float = 0.0005) -> None:
    """Sleep until the other threads of this process sleep, at most `limit_seconds`.

    OpenMP pools spin for some milliseconds after a call and would take a core from the engine that
    is timed next.
    """
    end = time.perf_counter() + limit_seconds
    while time.perf_counter() < end and any_other_thread_runs():
        time.sleep(step_seconds)


def any_other_thread_runs() -> bool:
    """Return whether a thread of this process other than the caller is running or runnable."""
    own = str(threading.get_native_id())
    for task in TASKS.iterdir():
        try:
            state = (task / "stat").read_text().rpartition(")")[2].split()[0]
        except ENDED:
            continue
        if state == "R" and task.name != own:
            return True
    return False


class EnergyMeter(NamedTuple):
    """Energy counters that are read together.

    `read` returns the joules of each counter since a time of its own, nothing where one cannot be
    read. A counter starts again from 0 after its value in `ranges_j`. `shortest_s` is the shortest
    time in seconds whose energy they show.
    """

    read: Callable[[], list[float]]
    ranges_j: list[float]
    shortest_s: float = 0.0

    def joules_since(self, before: list[float]) -> float | None:
        """Return the joules of all counters since they were at `before`, None where unknown."""
        now = self.read()
        if not now or not before:
            return None
        counters = zip(before, now, self.ranges_j, strict=True)
        return sum(late - early + (limit if late < early else 0) for early, late, limit in counters)


def package_meter(folder: Path = POWERCAP) -> EnergyMeter | None:
    """Return the meter of all packages of processors, None where they cannot be read.

    They are zones of the kernel's powercap framework
    (https://docs.kernel.org/power/powercap/powercap.html): RAPL of Intel and, under the same name,
    of AMD. Zones of parts of a package, of memory and of the platform are left out. Often only root
    may read them.
    """
    try:
        zones = [
            zone
            for zone in sorted(folder.glob("intel-rapl:*"))
            if (zone / "name").read_text().startswith("package")
        ]
        ranges = [int((zone / "max_energy_range_uj").read_text()) * MICRO for zone in zones]
    except (OSError, ValueError):
        return None

    def read() -> list[float]:
        try:
            return [int((zone / "energy_uj").read_text()) * MICRO for zone in zones]
        except (OSError, ValueError):
            return []

    return EnergyMeter(read, ranges) if read() else None


def gpu_meter(gpu: Any | None) -> EnergyMeter | None:
    """Return the meter of a GPU by its NVML handle, None without one or where it has no counter.

    GPUs before Volta, MIG instances and some virtual GPUs have none.
    """
    import pynvml

    def read() -> list[float]:
        counted = known(pynvml.nvmlDeviceGetTotalEnergyConsumption, gpu)
        return [] if counted is None else [counted * MILLI]

    return EnergyMeter(read, [2**64 * MILLI], GPU_SECONDS) if gpu and read() else None
