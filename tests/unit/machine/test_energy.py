"""Joules of real counter files in a folder of the test, and of a driver library of the test."""

from pathlib import Path

import pytest
from energy_counter import RANGE_UJ, zone
from nvml_driver import printed_each
from tightrope.machine.counters import GPU_SECONDS, EnergyMeter, gpu_meter, package_meter

ON_GPU = """
from tightrope.machine.counters import gpu_meter
from tightrope.machine.nvml import held_gpu
meter = gpu_meter(held_gpu())
print(meter and [meter.joules_since(meter.read()), meter.shortest_s])
"""


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
