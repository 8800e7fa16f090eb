"""What NVML says of the GPU that CUDA uses first, read from a driver library of the test."""

from collections.abc import Callable
from pathlib import Path

import pytest
from nvml_driver import build_driver, printed

SEEN = "from tightrope.machine.nvml import *; print(nvidia_gpu(), free_device_bytes())"
H100 = "('NVIDIA H100 80GB HBM3', '580.65.06') 75161927680"
L4 = H100.replace("H100 80GB HBM3", "L4")
MIG = H100.replace("HBM3", "HBM3 MIG 1g.10gb")
NONE = "(None, None) None"
See = Callable[..., str]


@pytest.fixture(scope="module")
def see(tmp_path_factory: pytest.TempPathFactory) -> See:
    """Returns what a new process sees with these variables."""
    folder = tmp_path_factory.mktemp("driver")
    build_driver(folder)
    return lambda path=folder, **variables: printed(SEEN, path, **variables)


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
    assert see(FAKE_NO_MEMORY="1") == H100.replace("75161927680", "None")


def test_a_machine_without_the_library_has_no_gpu(see: See, tmp_path: Path) -> None:
    if Path("/proc/driver/nvidia").exists():
        pytest.skip("this machine has NVIDIA's driver")
    assert see(tmp_path) == NONE
