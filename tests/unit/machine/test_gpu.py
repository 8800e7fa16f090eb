"""What is missing for a GPU is one line, with the versions found and needed."""

from pathlib import Path
from typing import Any

import pytest
import torch
from nvml_driver import build_driver, printed_each
from tightrope.engines.load import engine_module
from tightrope.errors import WorkFailed
from tightrope.jobs.child import Limits, supervised
from tightrope.machine.gpu import (
    missing_packages,
    missing_toolkit,
    require_gpu,
)
from tightrope.machine.nvml import nvidia_gpu
from tightrope.runtimes.tensorrt.errors import require_same, require_version

WITHOUT = pytest.mark.skipif(nvidia_gpu()[0] is not None, reason="this machine has an NVIDIA GPU")
LIMITS = Limits(memory_bytes=8e9, seconds=60)
OPTIONS = {"version_compatible": False, "hardware_compatibility": "none"}
HERE = {"tensorrt": "11.4.0.106", "gpu": "NVIDIA H200"}


def refused(*arguments: Any, by: Any) -> str:
    with pytest.raises(WorkFailed) as caught:
        by(*arguments)
    assert not caught.value.transient
    assert "\n" not in caught.value.reason
    return caught.value.reason


@WITHOUT
def test_without_a_driver_the_line_says_what_needs_which_cuda() -> None:
    words = refused("PyTorch 2.13.0", "13.0", by=require_gpu)
    assert words.startswith("no NVIDIA GPU: PyTorch 2.13.0 needs one and a driver for CUDA 13.0")
    words = refused("PyTorch 2.13.0+cpu", None, by=require_gpu)
    assert words == "PyTorch 2.13.0+cpu was built without CUDA: install what envs/gpu.txt names"


REFUSED = """
import sys
from tightrope.errors import WorkFailed
from tightrope.machine.gpu import require_gpu, require_same_gpu
try:
    print({"gpu": require_gpu, "same": require_same_gpu}[WHICH](*WORDS))
except WorkFailed as error:
    print(error.reason)
"""


def said(folder: Path, which: str, words: tuple[str, ...], *cases: dict[str, str]) -> list[str]:
    """What a process says that finds the driver libraries of the tests in `folder`."""
    program = REFUSED.replace("WHICH", repr(which)).replace("WORDS", repr(words))
    return printed_each(program, folder, list(cases))


def test_an_old_driver_is_one_line_with_its_version_and_the_remedy(tmp_path: Path) -> None:
    """It runs every CUDA of its major version."""
    build_driver(tmp_path)
    versions = [{"FAKE_CUDA": version} for version in ("12040", "13000", "13010", "14000")]
    assert said(tmp_path, "gpu", ("PyTorch 2.13.0", "13.1"), *versions) == [
        "driver 580.65.06 is too old: it runs CUDA up to 12.4, PyTorch 2.13.0 needs CUDA 13.1; "
        "update the driver to 580 or later",
        *["None"] * 3,
    ]


def test_the_gpu_that_cuda_uses_must_be_the_one_that_is_recorded(tmp_path: Path) -> None:
    build_driver(tmp_path)
    second = {"CUDA_VISIBLE_DEVICES": "1"}
    # an instance may be given the UUID of its GPU
    instance = {"CUDA_VISIBLE_DEVICES": "MIG-cccc-3333"}
    assert said(tmp_path, "same", ("aaaa-1111",), {}, instance) == ["None", "None"]
    assert said(tmp_path, "same", ("bbbb-2222",), second, {}) == [
        "None",
        "CUDA's first GPU is GPU-bbbb-2222, and not the one recorded, NVIDIA H100 80GB HBM3 "
        "(GPU-aaaa-1111): set CUDA_DEVICE_ORDER=PCI_BUS_ID, or CUDA_VISIBLE_DEVICES to a UUID",
    ]


def test_packages_for_a_gpu_are_looked_for_without_importing_them() -> None:
    assert missing_packages("tensorrt") == "no tensorrt: install what envs/gpu.txt names"
    lacking = (
        None if torch.version.cuda else "PyTorch without CUDA: install what envs/gpu.txt names"
    )
    assert missing_packages("compile") == lacking
    assert missing_packages("onnxruntime").startswith("no onnxruntime-gpu: ")


def test_a_runtime_that_is_not_installed_is_one_line_with_its_remedy() -> None:
    words = refused("tensorrt", by=engine_module)
    assert words.startswith("tensorrt cannot be imported (ModuleNotFoundError: No module named")
    assert words.endswith("on a GPU envs/gpu.txt, names")


def raise_error(words: str) -> None:
    raise RuntimeError(words)


@pytest.mark.parametrize(
    ("words", "full"),
    [
        ("CUDA out of memory. Tried to allocate 20.00 GiB.", True),
        ("CUDA error: CUDA_ERROR_OUT_OF_MEMORY", True),
        ("Failed to allocate memory for requested buffer of size 5", True),
        ("Error Code 2: OutOfMemory (Requested size was 9 bytes.)", True),
        ("cuBLAS error: CUBLAS_STATUS_NOT_SUPPORTED", False),
    ],
)
def test_a_full_gpu_may_have_room_the_next_time(words: str, full: bool) -> None:
    with pytest.raises(WorkFailed) as caught:
        supervised(raise_error, words, limits=LIMITS)
    assert caught.value.transient is full
    assert words in caught.value.reason


def test_tensorrt_10_is_refused_with_a_word_on_what_changed() -> None:
    assert "TensorRT 10.13.3.9 found, 11 needed: since 11 the ONNX file" in refused(
        "10.13.3.9", by=require_version
    )
    require_version("11.4.0.106")
    require_version("12.0.1")


@pytest.mark.parametrize(
    ("built", "options", "same"),
    [
        (HERE, OPTIONS, True),
        ({**HERE, "tensorrt": "11.2"}, OPTIONS, False),
        ({**HERE, "tensorrt": "11.2"}, {**OPTIONS, "version_compatible": True}, True),
        ({**HERE, "gpu": "NVIDIA L4"}, OPTIONS, False),
        ({**HERE, "gpu": "NVIDIA L4"}, {**OPTIONS, "version_compatible": True}, False),
        ({**HERE, "gpu": "NVIDIA L4"}, {**OPTIONS, "hardware_compatibility": "ampere_plus"}, True),
    ],
)
def test_a_plan_belongs_to_one_tensorrt_and_one_gpu_unless_it_was_built_for_more(
    built: dict[str, str], options: dict[str, Any], same: bool
) -> None:
    if same:
        require_same(built, HERE, options)
    else:
        words = refused(built, HERE, options, by=require_same)
        assert f"by TensorRT {built['tensorrt']} for {built['gpu']}, here is" in words
        assert "TensorRT 11.4.0.106 on NVIDIA H200: delete the engine's folder" in words


def test_ahead_of_time_compilation_for_a_gpu_needs_the_toolkit(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("CUDA_HOME", str(tmp_path))
    assert missing_toolkit() is None
    monkeypatch.delenv("CUDA_HOME")
    monkeypatch.setenv("PATH", str(tmp_path))
    if not Path("/usr/local/cuda").is_dir():
        assert missing_toolkit().startswith("no CUDA toolkit: ")
    (tmp_path / "nvcc").write_text("#!/bin/sh\n")
    (tmp_path / "nvcc").chmod(0o755)
    assert missing_toolkit() is None
