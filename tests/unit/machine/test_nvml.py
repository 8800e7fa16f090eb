"""What NVML says of the GPU that CUDA uses first, read from a driver library of the test."""

from collections.abc import Callable
from pathlib import Path

import pytest
from nvml_driver import build_driver, printed

SEEN = "from tightrope.machine.nvml import *; print(*nvidia_gpu(), free_device_bytes(), sep=', ')"
H100 = f"NVIDIA H100 80GB HBM3, 580.65.06, GPU-aaaa-1111, {70 << 30}"
L4 = f"NVIDIA L4, 580.65.06, GPU-bbbb-2222, {70 << 30}"
MIG = f"NVIDIA H100 80GB HBM3 MIG 1g.10gb, 580.65.06, MIG-cccc-3333, {9 << 30}"
NONE = "None, None, None, None"
LINE = "from tightrope.machine.nvml import ambiguous_gpu; print(ambiguous_gpu())"
See = Callable[..., str]


@pytest.fixture(scope="module")
def see(tmp_path_factory: pytest.TempPathFactory) -> See:
    """Returns what a new process sees with these variables."""
    folder = tmp_path_factory.mktemp("driver")
    build_driver(folder)
    return lambda path=folder, program=SEEN, **variables: printed(program, path, **variables)


def test_without_a_choice_it_is_the_first_gpu(see: See) -> None:
    assert see() == H100


@pytest.mark.parametrize(
    ("visible", "gpu"),
    [
        *[("0", H100), ("1", L4), ("1,0", L4), (" 1 , 0", L4)],
        *[("GPU-bbbb-2222", L4), ("GPU-b", L4), ("MIG-cccc-3333", MIG)],
        *[("", NONE), ("-1", NONE), ("2", NONE), ("GPU-d", NONE), ("GPU-", NONE)],
        *[("MIG-d", NONE), ("NoDevFiles", NONE)],
    ],
)
def test_the_first_visible_device_is_the_one_that_runs(see: See, visible: str, gpu: str) -> None:
    assert see(CUDA_VISIBLE_DEVICES=visible) == gpu


@pytest.mark.parametrize("fault", ["FAKE_NO_DRIVER", "FAKE_LOST"])
def test_a_driver_that_does_not_answer_is_no_gpu(see: See, fault: str) -> None:
    assert see(**{fault: "1"}) == NONE


def test_memory_that_the_driver_does_not_report_is_unknown(see: See) -> None:
    assert see(FAKE_NO_MEMORY="1") == H100.replace(str(70 << 30), "None")


def test_a_machine_without_the_library_has_no_gpu(see: See, tmp_path: Path) -> None:
    if Path("/proc/driver/nvidia").exists():
        pytest.skip("this machine has NVIDIA's driver")
    assert see(tmp_path) == NONE


@pytest.mark.parametrize("visible", ["0", "GPU-aaaa-1111", "MIG-cccc-3333"])
def test_of_a_divided_gpu_it_is_the_first_instance_with_its_own_memory(
    see: See, visible: str
) -> None:
    assert see(FAKE_MIG="1", CUDA_VISIBLE_DEVICES=visible) == MIG
    assert see(FAKE_MIG="1") == MIG


def test_a_divided_gpu_without_instances_is_no_gpu_and_the_other_one_is_whole(see: See) -> None:
    assert see(FAKE_MIG="0") == NONE
    assert see(FAKE_MIG="0", CUDA_VISIBLE_DEVICES="1") == L4


def test_an_index_among_unlike_gpus_is_said_to_be_ambiguous(see: See) -> None:
    line = (
        "the GPUs of this machine are not alike (NVIDIA H100 80GB HBM3, NVIDIA L4), and CUDA "
        "counts them from the fastest on: its device 1 may be another than the one recorded, "
        "NVIDIA L4; set CUDA_DEVICE_ORDER=PCI_BUS_ID, or CUDA_VISIBLE_DEVICES to a UUID"
    )
    assert see(program=LINE, CUDA_VISIBLE_DEVICES="1") == line
    first = line.replace("device 1", "device 0").replace("ed, NVIDIA L4", f"ed, {H100[:21]}")
    assert see(program=LINE) == see(program=LINE, CUDA_DEVICE_ORDER="FASTEST_FIRST") == first


@pytest.mark.parametrize(
    "clear",
    [
        {"CUDA_DEVICE_ORDER": "PCI_BUS_ID"},
        {"CUDA_VISIBLE_DEVICES": "GPU-bbbb-2222"},
        {"CUDA_VISIBLE_DEVICES": "MIG-cccc-3333"},
        {"CUDA_VISIBLE_DEVICES": ""},
        {"FAKE_ALIKE": "1"},
        {"FAKE_NO_DRIVER": "1"},
    ],
)
def test_a_choice_that_is_clear_is_not_remarked_on(see: See, clear: dict[str, str]) -> None:
    assert see(program=LINE, **clear) == "None"
