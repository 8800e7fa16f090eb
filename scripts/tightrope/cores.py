"""How many cores this process may use."""

import math
import os
from pathlib import Path


def intra_op_threads(setting: int | str) -> int:
    """`threads` of the configuration as a number: `auto` is the physical cores of this host."""
    return physical_cores() if setting == "auto" else int(setting)


def physical_cores() -> int:
    """Physical cores among the processors that this process may use, within its CPU quota."""
    processors = os.sched_getaffinity(0)
    topology = Path("/sys/devices/system/cpu")
    siblings = {core_siblings(topology / f"cpu{number}", number) for number in processors}
    return max(1, min(len(siblings), cpu_quota()))


def core_siblings(processor: Path, number: int) -> str:
    """The processors that share a core with this one, as the kernel writes them."""
    file = processor / "topology" / "thread_siblings_list"
    return file.read_text().strip() if file.is_file() else str(number)


def cpu_quota() -> int:
    """Whole processors that the control group allows; a large number without a limit."""
    limit = Path("/sys/fs/cgroup/cpu.max")
    quota, _, period = limit.read_text().partition(" ") if limit.is_file() else ("max", "", "")
    return math.ceil(int(quota) / int(period)) if quota.isdigit() else 1 << 20
