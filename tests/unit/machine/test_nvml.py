"""What NVML says of the GPU that CUDA uses first and of its state, by a driver of the test."""

import json
from pathlib import Path

import pynvml
from gpu_states import STATE
from nvml_driver import printed, printed_each
from tightrope.machine.interference import SLOWDOWNS
from tightrope.machine.nvml import THROTTLES

SEEN = "from tightrope.machine.nvml import *; print(*nvidia_gpu(), free_device_bytes(), sep=', ')"
H100 = f"NVIDIA H100 80GB HBM3, 580.65.06, GPU-aaaa-1111, {70 << 30}"
L4 = f"NVIDIA L4, 580.65.06, GPU-bbbb-2222, {70 << 30}"
MIG = f"NVIDIA H100 80GB HBM3 MIG 1g.10gb, 580.65.06, MIG-cccc-3333, {9 << 30}"
NONE = "None, None, None, None"
LINE = "from tightrope.machine.nvml import ambiguous_gpu; print(ambiguous_gpu())"
VISIBLE = "CUDA_VISIBLE_DEVICES"


def test_it_is_the_first_visible_device_or_instance_or_unknown(driver, tmp_path) -> None:
    whole = {
        **dict.fromkeys(["0", "GPU-aaaa-1111"], H100),
        **dict.fromkeys(["1", " 1 , 0", "GPU-b"], L4),
        "MIG-cccc-3333": MIG,
        **dict.fromkeys(["", "-1", "2", "GPU-d", "GPU-", "MIG-d", "NoDevFiles"], NONE),
    }
    found = printed_each(SEEN, driver, [{}, *({VISIBLE: one} for one in whole)])
    assert found[0] == H100
    assert dict(zip(whole, found[1:], strict=True)) == whole
    # of a divided GPU the first instance, with its own memory
    visible = ["0", "GPU-aaaa-1111", "MIG-cccc-3333"]
    divided = [{"FAKE_MIG": "1"}, *({"FAKE_MIG": "1", VISIBLE: one} for one in visible)]
    assert printed_each(SEEN, driver, divided) == [MIG] * 4
    without = [{"FAKE_MIG": "0"}, {"FAKE_MIG": "0", VISIBLE: "1"}]
    assert printed_each(SEEN, driver, without) == [NONE, L4]
    # what the driver does not answer
    faults = [{name: "1"} for name in ("FAKE_NO_DRIVER", "FAKE_LOST", "FAKE_NO_MEMORY")]
    without_memory = H100.replace(str(70 << 30), "None")
    assert printed_each(SEEN, driver, faults) == [NONE, NONE, without_memory]
    if not Path("/proc/driver/nvidia").exists():
        assert printed(SEEN, tmp_path) == NONE  # without the library


def test_an_index_among_unlike_gpus_is_said_to_be_ambiguous(driver: Path) -> None:
    line = (
        "the GPUs of this machine are not alike (NVIDIA H100 80GB HBM3, NVIDIA L4), and CUDA "
        "counts them from the fastest on: its device 1 may be another than the one recorded, "
        "NVIDIA L4; set CUDA_DEVICE_ORDER=PCI_BUS_ID, or CUDA_VISIBLE_DEVICES to a UUID"
    )
    first = line.replace("device 1", "device 0").replace("ed, NVIDIA L4", f"ed, {H100[:21]}")
    unclear = [{VISIBLE: "1"}, {}, {"CUDA_DEVICE_ORDER": "FASTEST_FIRST"}]
    clear = [{VISIBLE: one} for one in ("GPU-bbbb-2222", "MIG-cccc-3333", "")]
    clear += [{"CUDA_DEVICE_ORDER": "PCI_BUS_ID"}, {"FAKE_ALIKE": "1"}, {"FAKE_NO_DRIVER": "1"}]
    found = printed_each(LINE, driver, unclear + clear)
    assert found == [line, first, first, *["None"] * len(clear)]


READ = """
import json
from tightrope.machine.nvml import GpuReader, held_gpu
gpu = held_gpu()
print(json.dumps(GpuReader(gpu).read() if gpu else None))
"""
QUIET = {**STATE, "power_w": 412.345, "memory_bytes": 3 << 30}
SLOW = ["hardware slowdown", "thermal slowdown", "hardware thermal slowdown"]
HIDDEN = QUIET | dict.fromkeys(["other_processes", "computing_processes", "memory_bytes"])
INSTANCE = dict.fromkeys(QUIET) | {"other_processes": 0, "computing_processes": 0}
INSTANCE |= {"memory_bytes": 3 << 30}
SHARED = {"other_processes": 1, "computing_processes": 1}
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
    # an open notebook holds memory and runs no kernels
    ("FAKE_SHARED=1", QUIET | {"other_processes": 1}),
    ("FAKE_SHARED=1 FAKE_COMPUTING=4", QUIET | {"other_processes": 1}),
    ("FAKE_SHARED=1 FAKE_COMPUTING=40", QUIET | SHARED),
    ("FAKE_SHARED=1 FAKE_MIG=1", INSTANCE | SHARED | {"computing_processes": None}),
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


def test_the_state_has_units_and_words_for_the_bits_of_nvml(driver: Path) -> None:
    cases = [dict(one.split("=") for one in variables.split()) for variables, _ in STATES]
    found = printed_each(READ, driver, cases)
    named = zip((variables for variables, _ in STATES), map(json.loads, found), strict=True)
    assert list(named) == STATES
    # a slowdown is one of the words
    names = ("SwPowerCap", "HwSlowdown", "SyncBoost", "SwThermalSlowdown", "HwThermalSlowdown")
    names += ("HwPowerBrakeSlowdown", "DisplayClockSetting")
    assert list(THROTTLES) == [getattr(pynvml, f"nvmlClocksEventReason{name}") for name in names]
    assert set(THROTTLES.values()) - SLOWDOWNS == {"power cap", "sync boost", "display clocks"}
