"""The state of a GPU, read from a driver library of the test, and nothing without a driver."""

import json
from pathlib import Path

import pynvml
from nvml_driver import build_driver, printed, printed_each
from tightrope.machine.gpu_state import THROTTLES
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
SLOW = ["hardware slowdown", "thermal slowdown", "hardware thermal slowdown"]
HIDDEN = QUIET | {"other_processes": None, "memory_bytes": None}
INSTANCE = dict.fromkeys(QUIET) | {"other_processes": 0, "memory_bytes": 3 << 30}
# what is wrong with the driver, and the state
STATES = [
    ("", QUIET),
    ("FAKE_LIMITS=0", QUIET),
    ("FAKE_LIMITS=2", QUIET | {"application_clocks": True}),
    ("FAKE_LIMITS=4", QUIET | {"throttled": ["power cap"]}),
    ("FAKE_LIMITS=104", QUIET | {"throttled": SLOW}),
    ("FAKE_LIMITS=130", QUIET | {"throttled": ["power brake"], "application_clocks": True}),
    # its function has another name
    ("FAKE_OLD_DRIVER=1 FAKE_LIMITS=4", QUIET | {"throttled": ["power cap"]}),
    ("FAKE_SHARED=1", QUIET | {"other_processes": 1}),
    # a container hides this process
    ("FAKE_CONTAINER=1", HIDDEN),
    ("FAKE_CONTAINER=1 FAKE_SHARED=1", HIDDEN),
    ("FAKE_HIDDEN_MEMORY=1", QUIET | {"memory_bytes": None}),
    # of an instance the clocks are those of the whole GPU
    ("CUDA_VISIBLE_DEVICES=MIG-cccc-3333", INSTANCE),
    ("FAKE_MIG=1", INSTANCE),
    ("FAKE_NO_DRIVER=1", None),
    ("FAKE_LOST=1", None),
]


def test_the_state_has_units_and_words_and_what_is_not_reported_is_unknown(tmp_path: Path) -> None:
    if not Path("/proc/driver/nvidia").exists():
        assert printed(READ, tmp_path) == "null"  # without the library
    build_driver(tmp_path)
    cases = [dict(one.split("=") for one in variables.split()) for variables, _ in STATES]
    found = printed_each(READ, tmp_path, cases)
    named = zip((variables for variables, _ in STATES), map(json.loads, found), strict=True)
    assert list(named) == STATES


def test_the_bits_are_those_of_nvml_and_a_slowdown_is_one_of_the_words() -> None:
    names = ("SwPowerCap", "HwSlowdown", "SyncBoost", "SwThermalSlowdown", "HwThermalSlowdown")
    names += ("HwPowerBrakeSlowdown", "DisplayClockSetting")
    assert list(THROTTLES) == [getattr(pynvml, f"nvmlClocksEventReason{name}") for name in names]
    assert set(THROTTLES.values()) - SLOWDOWNS == {"power cap", "sync boost", "display clocks"}
