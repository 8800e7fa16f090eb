"""The state of a GPU, read from a driver library of the test, and nothing without a driver."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from nvml_driver import build_driver, printed
from tightrope.machine.gpu_state import THROTTLES, limits_in_words
from tightrope.machine.interference import SLOWDOWNS

READ = """
import json
from tightrope.machine.gpu_state import GpuState
from tightrope.machine.nvml import held_gpu
gpu = held_gpu()
print(json.dumps(GpuState(gpu).read() if gpu else None))
"""
QUIET = {
    "sm_clock_mhz": 1980,
    "memory_clock_mhz": 2619,
    "temperature_c": 61,
    "power_w": 412.345,
    "throttled": [],
    "application_clocks": False,
    "other_processes": 0,
    "memory_bytes": 3 << 30,
}
UNKNOWN = dict.fromkeys(QUIET)
Read = Callable[..., Any]


@pytest.fixture(scope="module")
def read(tmp_path_factory: pytest.TempPathFactory) -> Read:
    """Returns the state that a new process reads with these variables."""
    folder = tmp_path_factory.mktemp("driver")
    build_driver(folder)
    return lambda **variables: json.loads(printed(READ, folder, **variables))


def test_the_state_has_units_and_words_and_leaves_out_the_processes_of_the_job(read: Read) -> None:
    assert read() == QUIET


@pytest.mark.parametrize(
    ("bits", "throttled", "application_clocks"),
    [
        (0x0, [], False),
        (0x1, [], False),
        (0x2, [], True),
        (0x4, ["power cap"], False),
        (0x68, ["hardware slowdown", "thermal slowdown", "hardware thermal slowdown"], False),
        (0x82, ["power brake"], True),
    ],
)
def test_what_limits_the_clocks_is_told_in_words(
    read: Read, bits: int, throttled: list[str], application_clocks: bool
) -> None:
    found = {"throttled": throttled, "application_clocks": application_clocks}
    assert limits_in_words(bits) == found
    assert read(FAKE_LIMITS=str(bits)) == QUIET | found


def test_an_older_driver_tells_it_under_the_former_name(read: Read) -> None:
    assert read(FAKE_OLD_DRIVER="1", FAKE_LIMITS="4")["throttled"] == ["power cap"]


def test_another_process_on_the_gpu_is_counted(read: Read) -> None:
    assert read(FAKE_SHARED="1") == QUIET | {"other_processes": 1}


def test_where_a_container_hides_this_process_neither_others_nor_memory_are_known(
    read: Read,
) -> None:
    hidden = {"other_processes": None, "memory_bytes": None}
    for shared in ({}, {"FAKE_SHARED": "1"}):
        assert read(FAKE_CONTAINER="1", **shared) == QUIET | hidden


def test_memory_that_is_not_reported_per_process_is_unknown(read: Read) -> None:
    assert read(FAKE_HIDDEN_MEMORY="1") == QUIET | {"memory_bytes": None}


def test_of_a_mig_instance_only_processes_and_memory_are_known(read: Read) -> None:
    found = read(CUDA_VISIBLE_DEVICES="MIG-cccc-3333")
    assert found == UNKNOWN | {"other_processes": 0, "memory_bytes": 3 << 30}


def test_of_a_divided_gpu_the_state_is_not_that_of_the_whole(read: Read) -> None:
    assert read(FAKE_MIG="1") == UNKNOWN | {"other_processes": 0, "memory_bytes": 3 << 30}


@pytest.mark.parametrize("fault", ["FAKE_NO_DRIVER", "FAKE_LOST"])
def test_without_a_driver_there_is_no_state(read: Read, fault: str) -> None:
    assert read(**{fault: "1"}) is None


def test_without_the_library_there_is_no_state(tmp_path: Path) -> None:
    if Path("/proc/driver/nvidia").exists():
        pytest.skip("this machine has NVIDIA's driver")
    assert printed(READ, tmp_path) == "null"


def test_what_counts_as_a_slowdown_is_one_of_the_words() -> None:
    assert set(THROTTLES.values()) - SLOWDOWNS == {"power cap", "sync boost", "display clocks"}


def test_the_bits_are_those_of_nvml() -> None:
    import pynvml

    names = ("SwPowerCap", "HwSlowdown", "SyncBoost", "SwThermalSlowdown", "HwThermalSlowdown")
    names += ("HwPowerBrakeSlowdown", "DisplayClockSetting")
    assert list(THROTTLES) == [getattr(pynvml, f"nvmlClocksEventReason{name}") for name in names]
