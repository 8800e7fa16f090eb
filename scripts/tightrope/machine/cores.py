"""CPU cores that this process may use."""

import math
import os
from pathlib import Path

TOPOLOGY = Path("/sys/devices/system/cpu")
# what OpenMP's threads do between two operators; not as users write it, to know their own
WAITING, PASSIVE = "OMP_WAIT_POLICY", "passive"


def let_threads_sleep() -> None:
    """Have waiting threads of OpenMP sleep, in processes that start from now on.

    Beside another program threads that spin take several times as long. They spin where a user has
    said so.
    """
    os.environ.setdefault(WAITING, PASSIVE)


def let_threads_spin() -> None:
    """Undo `let_threads_sleep` for an engine, in a process that has not loaded OpenMP yet."""
    if os.environ.get(WAITING) == PASSIVE:
        del os.environ[WAITING]


def intra_op_threads(setting: int | str) -> int:
    """Resolve `threads` of the configuration: `auto` is the number of physical cores here."""
    return physical_cores() if setting == "auto" else int(setting)


def physical_cores() -> int:
    """Return the number of physical cores that affinity and CPU quota allow this process."""
    return max(1, min(len(first_processor_per_core()), cpu_quota()))


def pinned_processors(threads: int) -> list[int]:
    """Return the logical processors to pin an engine to: one per core, the fastest cores first.

    All that this process may use where there are fewer cores than threads.
    """
    chosen = sorted(
        first_processor_per_core(),
        key=lambda number: (-(frequency(number, "cpuinfo_max_freq") or 0), number),
    )
    if len(chosen) < threads:
        return sorted(os.sched_getaffinity(0))
    return sorted(chosen[:threads])


def first_processor_per_core() -> list[int]:
    """Return the first logical processor of each physical core that this process may use."""
    first: dict[str, int] = {}
    for number in sorted(os.sched_getaffinity(0)):
        file = TOPOLOGY / f"cpu{number}" / "topology" / "thread_siblings_list"
        siblings = file.read_text().strip() if file.is_file() else str(number)
        first.setdefault(siblings, number)
    return list(first.values())


def frequency(number: int, name: str = "scaling_cur_freq") -> int | None:
    """Return a frequency of a processor in kHz, None where the kernel does not report it."""
    file = TOPOLOGY / f"cpu{number}" / "cpufreq" / name
    return int(file.read_text()) if file.is_file() else None


def cpu_quota() -> int:
    """Return the CPU quota of the control group, rounded up; a large number without a limit."""
    limit = Path("/sys/fs/cgroup/cpu.max")
    quota, _, period = limit.read_text().partition(" ") if limit.is_file() else ("max", "", "")
    return math.ceil(int(quota) / int(period)) if quota.isdigit() else 1 << 20
