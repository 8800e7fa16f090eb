"""What the kernel counts: in files of the test as it writes them, and of real processes."""

import shutil
import threading
import time
from pathlib import Path

import psutil
import pytest
from energy_counter import RANGE_UJ, zone
from nvml_driver import printed_each
from tightrope.machine import counters
from tightrope.machine.counters import (
    GPU_SECONDS,
    IDLE,
    STEAL,
    TICKS,
    EnergyMeter,
    counted_seconds,
    gpu_meter,
    package_meter,
)

ON_GPU = """
from tightrope.machine.counters import gpu_meter
from tightrope.machine.nvml import held_gpu
meter = gpu_meter(held_gpu())
print(meter and [meter.joules_since(meter.read()), meter.shortest_s])
"""


@pytest.fixture
def tasks(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """The folder of this process's threads, of which one ended after it was listed."""
    monkeypatch.setattr(counters, "TASKS", tmp_path)
    (tmp_path / "99").mkdir()
    return tmp_path


def write_task(tasks: Path, thread: int, name: str, text: str) -> None:
    (tasks / str(thread)).mkdir(exist_ok=True)
    (tasks / str(thread) / name).write_text(f"{text}\n")


def test_counters_are_of_threads_and_their_difference_what_happened(tasks: Path) -> None:
    """A thread that started in between counts whole, and one that ended not."""
    for earlier, later, waited in ((0.25, 0.75, 0.5), (None, 1.0, None), (1.0, None, None)):
        before = counters.Counters({1: 2.0, 2: 5.0}, earlier, 7, 1.5)
        after = counters.Counters({1: 2.5, 3: 0.5}, later, 9, 1.75)
        assert after.since(before) == counters.Counters({1: 0.5, 3: 0.5}, waited, 2, 0.25)
    write_task(tasks, 7, "schedstat", "2500000000 500000000 40")
    write_task(tasks, 8, "schedstat", "1000000000 250000000 3")
    found = counters.counters()
    assert (found.threads, found.waited_s) == ({7: 2.5, 8: 1.0}, pytest.approx(0.75))
    # a kernel that does not count it
    shutil.rmtree(tasks / "8")
    write_task(tasks, 7, "schedstat", "")
    found = counters.counters()
    assert found.waited_s is None
    assert found.threads.keys() == {thread.id for thread in psutil.Process().threads()}


def test_idle_and_stolen_seconds(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    statistics = tmp_path / "stat"
    line = "cpu{0} 1000 1 1 {1} {2} 1 1 {3} 1 1\n"
    numbers = [("", 900, 90, 9), (0, TICKS, 0, 0), (1, 2 * TICKS, TICKS, 5 * TICKS), (10, 7, 7, 7)]
    statistics.write_text("".join(line.format(*one) for one in numbers) + "intr 1 2 3\n")
    monkeypatch.setattr(counters, "STATISTICS", statistics)
    assert [counted_seconds(one, IDLE) for one in ({0}, {1}, {0, 1})] == [1, 3, 4]
    assert [counted_seconds(one, STEAL) for one in ({0}, {1}, set())] == [0, 5, 0]


def test_a_process_settles_when_its_last_thread_sleeps_and_at_the_limit(tasks: Path) -> None:
    own = threading.get_native_id()
    write_task(tasks, own, "stat", f"{own} (python) R 1 2")
    write_task(tasks, 7, "stat", "7 (a name) S) R 1 2")
    began = time.perf_counter()
    counters.settle(limit_seconds=0.1)
    assert time.perf_counter() - began >= 0.1
    write_task(tasks, 7, "later", "7 (a name) R) S 1 2")
    threading.Timer(0.2, (tasks / "7/later").replace, [tasks / "7/stat"]).start()
    counters.settle(limit_seconds=20)
    assert not (tasks / "7/later").exists()
    assert time.perf_counter() - began < 20


def metered(folder: Path) -> EnergyMeter:
    meter = package_meter(folder)
    assert meter is not None
    return meter


def test_the_joules_of_all_packages_are_summed_and_no_part_is_counted_twice(tmp_path: Path) -> None:
    zones = {"0": "package-0", "0:0": "core", "0:1": "dram", "1": "package-1", "2": "psys"}
    names = {f"intel-rapl:{number}": domain for number, domain in zones.items()}
    names["intel-rapl-mmio:0"] = "package-0"  # the same package once more
    files = [zone(tmp_path, name, domain, 10**6) for name, domain in names.items()]
    meter = metered(tmp_path)
    before = meter.read()
    for added, file in enumerate(files, start=1):
        file.write_text(f"{10**6 + added * 10**6}\n")
    assert meter.joules_since(before) == pytest.approx(1 + 4)
    assert meter.shortest_s == 0


def test_a_counter_may_start_again_from_zero_or_go_away(tmp_path: Path) -> None:
    file = zone(tmp_path, "intel-rapl:0", "package-0", RANGE_UJ - 250_000)
    meter = metered(tmp_path)
    before = meter.read()
    assert meter.joules_since(before) == 0
    file.write_text("750000\n")
    assert meter.joules_since(before) == pytest.approx(1.0)
    file.write_text("none")
    assert meter.joules_since(before) is None
    file.unlink()
    assert meter.joules_since(before) is meter.joules_since([]) is None


def test_a_machine_without_counters_that_can_be_read_has_no_meter(tmp_path: Path) -> None:
    assert package_meter(tmp_path / "none") is None
    zone(tmp_path, "intel-rapl:0:0", "core", 0)
    assert package_meter(tmp_path) is None
    zone(tmp_path, "intel-rapl:0", "package-0", 0)
    hidden = zone(tmp_path, "intel-rapl:1", "package-1", 0)
    assert package_meter(tmp_path) is not None
    hidden.unlink()
    hidden.mkdir()  # reading a folder fails for root too, as a file of root fails for a user
    assert package_meter(tmp_path) is None


def test_a_gpu_counts_in_millijoules_and_needs_a_second(driver: Path) -> None:
    faults = [{"FAKE_NO_ENERGY": "1"}, {"FAKE_MIG": "1"}, {"FAKE_NO_DRIVER": "1"}]
    found = printed_each(ON_GPU, driver, [{}, *faults])
    assert found == [f"[1.5, {GPU_SECONDS}]", *["None"] * len(faults)]
    assert gpu_meter(None) is None
