"""This machine: its processor, and what may slow it down while something is timed."""

import hashlib
import json
import os
import platform
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from statistics import median

CPUS, STAT = Path("/sys/devices/system/cpu"), Path("/proc/stat")
QUOTA = Path("/sys/fs/cgroup/cpu.max")
TICKS = os.sysconf("SC_CLK_TCK")
WORK = bytes(8 << 20)  # that of the measurement
ROUNDS = 20
CHANGED = 1.1  # times the fixed workload's seconds, or as many times fewer
FOREIGN_CORES = 0.1


class Refused(ValueError):
    """Why the bundle is not to be used here."""


def read_facts(folder):
    """Return bundle.json, before anything of the engine is loaded.

    Raises Refused on a processor that cannot run the engine.
    """
    facts = json.loads((folder / "bundle.json").read_text())
    if platform.machine() != facts["machine"]:
        raise Refused(f"made for {facts['machine']}, this is {platform.machine()}")
    fields = cpu_fields()
    if missing := [one for one in facts["requires"] if one not in instructions(fields)]:
        raise Refused(
            f"its code was compiled for {', '.join(missing)}, which this processor "
            f"({cpu_name(fields)}) lacks; build and bundle it on such a machine"
        )
    return facts


def cpu_fields():
    """Return the fields of the first processor in /proc/cpuinfo, {} where there is none."""
    try:
        text = Path("/proc/cpuinfo").read_text().split("\n\n")[0]
    except OSError:
        return {}
    pairs = (line.partition(":") for line in text.splitlines())
    return {name.strip(): value.strip() for name, _, value in pairs}


def cpu_name(fields):
    """Return the model of the processor."""
    name = fields.get("model name") or platform.processor() or platform.machine()
    if "cpu family" not in fields:
        return name
    return f"{name} (family {fields['cpu family']} model {fields['model']})"


def instructions(fields):
    """Return the set of the processor's instruction sets."""
    return set((fields.get("flags") or fields.get("Features") or "").split())


def cpus():
    """Return how many processors this process may use, a container's quota included."""
    allowed = len(os.sched_getaffinity(0))
    try:
        quota, period = QUOTA.read_text().split()
        return allowed if quota == "max" else min(allowed, int(quota) / int(period))
    except (OSError, ValueError):
        return allowed


def workload_seconds(processors):
    """Return the median seconds of hashing 8 MiB (SHA-256) on so many processors at once."""
    seconds = []
    with ThreadPoolExecutor(processors) as pool:
        for _ in range(ROUNDS + 1):
            began = time.perf_counter()
            list(pool.map(lambda _: hashlib.sha256(WORK).digest(), range(processors)))
            seconds.append(time.perf_counter() - began)
    return median(seconds[1:])


class Watch:
    """What other programs and the hypervisor use, and whether the processor is throttled."""

    def __init__(self):
        self.began = time.monotonic()
        self.counters = self.read()

    def read(self):
        """Return CPU seconds of other programs, stolen seconds, and how often it was throttled."""
        own = os.times()
        busy = stolen = throttled = 0
        with suppress(OSError, ValueError):
            numbers = STAT.read_text().split("\n")[0].split()[1:9]
            user, nice, system, _, _, interrupts, soft, steal = (int(n) / TICKS for n in numbers)
            busy, stolen = user + nice + system + interrupts + soft, steal
        for file in CPUS.glob("cpu*/thermal_throttle/*_throttle_count"):
            with suppress(OSError, ValueError):
                throttled += int(file.read_text())
        ours = own.user + own.system + own.children_user + own.children_system
        return busy - ours, stolen, throttled

    def causes(self):
        """Return in words what slowed this machine down since the start."""
        seconds = time.monotonic() - self.began
        pairs = zip(self.read(), self.counters, strict=True)
        foreign, stolen, throttled = (now - before for now, before in pairs)
        found = []
        if foreign / seconds > FOREIGN_CORES:
            found.append(f"busy: other programs used {foreign / seconds:.1f} processors")
        if stolen / seconds > FOREIGN_CORES:
            found.append(f"busy: the hypervisor took {stolen / seconds:.1f} processors")
        if throttled > 0:
            found.append("throttled: the processor was too hot or at its power limit")
        return found
