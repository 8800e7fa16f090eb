"""An engine whose calls count a joule each in a real file, as the kernel counts a package's."""

from pathlib import Path
from typing import Any

from tightrope.machine.counters import package_meter
from tightrope.measure.timed_engine import TimedEngine

RANGE_UJ = 262_143_328_850


def zone(folder: Path, name: str, domain: str, energy_uj: int) -> Path:
    """Write a zone of the kernel's powercap framework; returns the file of its counter."""
    path = folder / name
    path.mkdir(parents=True)
    (path / "name").write_text(f"{domain}\n")
    (path / "max_energy_range_uj").write_text(f"{RANGE_UJ}\n")
    (path / "energy_uj").write_text(f"{energy_uj}\n")
    return path / "energy_uj"


class Metered(TimedEngine):
    """Calls of `run` that use a joule each; a counter shows the energy of `shortest_s` or more."""

    def __init__(self, run: Any, folder: Path, processors: list[int], shortest_s: float) -> None:
        self.folder, self.shortest_s = folder, shortest_s
        self.counter = zone(folder, "intel-rapl:0", "package-0", 0)
        super().__init__(lambda: (self.counted, {}), [None], processors)
        self.work = run

    def load(self) -> dict[str, float]:
        seconds = super().load()
        meter = package_meter(self.folder)
        self.meter = meter and meter._replace(shortest_s=self.shortest_s)
        return seconds

    def counted(self, inputs: Any) -> None:
        self.work(inputs)
        self.counter.write_text(str(int(self.counter.read_text()) + 10**6))
