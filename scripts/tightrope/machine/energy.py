"""Energy counters of the processors' packages and of a GPU: the joules of a stretch of time."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from tightrope.machine.nvml import known

POWERCAP = Path("/sys/class/powercap")
MICRO, MILLI = 1e-6, 1e-3
# NVML updates the counter of a GPU every 20 to 100 ms, so a block of 25 ms would often see no
# energy, or that of the blocks of other engines before it
GPU_SECONDS = 1.0


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
