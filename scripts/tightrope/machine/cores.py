"""Which cores this process may use, and how many."""

import math
import os
from pathlib import Path

TOPOLOGY = Path("/sys/devices/system/cpu")


def intra_op_threads(setting: int | str) -> int:
    """`threads` of the configuration as a number: `auto` is the physical cores of this host."""
    return physical_cores() if setting == "auto" else int(setting)


def physical_cores() -> int:
    """Physical cores among the processors that this process may use, within its CPU quota."""
    return max(1, min(len(one_processor_a_core()), cpu_quota()))


def pinned_processors(threads: int) -> list[int]:
    """The processors for an engine with so many threads: one of each core, the fastest first.

    All that this process may use where there are fewer cores than threads.
    """
    chosen = sorted(one_processor_a_core(), key=lambda number: (-top_frequency(number), number))
    if len(chosen) < threads:
        return sorted(os.sched_getaffinity(0))
    return sorted(chosen[:threads])


def one_processor_a_core() -> list[int]:
    """The first processor of each physical core that this process may use."""
    first: dict[str, int] = {}
    for number in sorted(os.sched_getaffinity(0)):
        first.setdefault(core_siblings(TOPOLOGY / f"cpu{number}", number), number)
    return list(first.values())


def core_siblings(processor: Path, number: int) -> str:
    """The processors that share a core with this one, as the kernel writes them."""
    file = processor / "topology" / "thread_siblings_list"
    return file.read_text().strip() if file.is_file() else str(number)


def top_frequency(number: int) -> int:
    """The highest frequency of a processor in kHz, 0 where the kernel does not say."""
    return frequency(number, "cpuinfo_max_freq") or 0


def frequency(number: int, name: str = "scaling_cur_freq") -> int | None:
    """A frequency of a processor in kHz, None where the kernel does not say."""
    file = TOPOLOGY / f"cpu{number}" / "cpufreq" / name
    return int(file.read_text()) if file.is_file() else None


def cpu_quota() -> int:
    """Whole processors that the control group allows; a large number without a limit."""
    limit = Path("/sys/fs/cgroup/cpu.max")
    quota, _, period = limit.read_text().partition(" ") if limit.is_file() else ("max", "", "")
    return math.ceil(int(quota) / int(period)) if quota.isdigit() else 1 << 20
