"""What is missing is one line, with the versions found and needed and the remedy."""

import sysconfig
from pathlib import Path
from typing import Any

import pytest
import torch
from nvml_driver import printed_each
from tightrope.engines.load import engine_module
from tightrope.engines.tensorrt_errors import require_same, require_version
from tightrope.errors import WorkFailed
from tightrope.jobs.child import supervised
from tightrope.machine import lacks
from tightrope.machine.lacks import (
    cuda_home,
    missing_compiler,
    missing_packages,
    missing_toolkit,
    require_gpu,
    torch_cuda,
)
from tightrope.machine.nvml import nvidia_gpu
from tiny_model import LIMITS

OPTIONS = {"version_compatible": False, "hardware_compatibility": "none"}
HERE = {"tensorrt": "11.4.0.106", "gpu": "NVIDIA H200"}
NO_COMPILER = "no C++ compiler: install g++ (Debian: apt-get install g++), or name one in CXX; "
NO_HEADERS = "no Python.h: install the headers of Python (Debian: apt-get install python3-dev)"


@pytest.fixture
def programs(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Any:
    """Puts programs into the only folder of PATH, which is also the current one."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", str(tmp_path))
    for name in ("CXX", "CUDA_HOME"):
        monkeypatch.delenv(name, raising=False)

    def programs(*names: str) -> None:
        for name in names:
            (tmp_path / name).write_text("#!/bin/sh\n")
            (tmp_path / name).chmod(0o755)

    return programs


def test_what_is_missing_to_compile(monkeypatch, tmp_path, programs) -> None:
    """Inductor runs the compiler that CXX names and no other, else g++."""
    monkeypatch.setattr(sysconfig, "get_path", lambda name: str(tmp_path))
    programs("gcc", "clang++")
    assert missing_compiler() == f"{NO_COMPILER}there is no g++"
    programs("g++", "c++-20")
    assert missing_compiler() == NO_HEADERS
    (tmp_path / "Python.h").touch()
    assert missing_compiler() is None
    monkeypatch.setenv("CXX", "gone")
    assert missing_compiler() == f"{NO_COMPILER}there is no gone"
    monkeypatch.setenv("CXX", "c++-20")
    assert missing_compiler() is None


def with_headers(folder: Path, names: tuple[str, ...] = lacks.HEADERS) -> Path:
    for header in (folder / "include" / name for name in names):
        header.parent.mkdir(parents=True, exist_ok=True)
        header.touch()
    return folder


def test_a_toolkit_is_a_folder_with_the_headers_that_are_included(monkeypatch, tmp_path, programs):
    """The one that is named, else that of pip for PyTorch's CUDA, or of nvcc."""
    monkeypatch.setenv("CUDA_HOME", str(with_headers(tmp_path / "own", lacks.HEADERS[:-1])))
    assert missing_toolkit() == (
        f"no cuda.h, cuda_runtime_api.h, crt/host_config.h, nv/target in include of {tmp_path}/own:"
        " AOTInductor compiles with them; install what envs/gpu.txt names, or set CUDA_HOME to a "
        "CUDA toolkit"
    )
    assert cuda_home() != with_headers(tmp_path / "own") == cuda_home()
    monkeypatch.delenv("CUDA_HOME")
    monkeypatch.setattr(lacks, "folders_of", lambda package: [str(tmp_path / package)])
    monkeypatch.setenv("PATH", str(with_headers(tmp_path / "cuda") / "include"))
    programs("cuda/include/nvcc")
    assert cuda_home() == tmp_path / "cuda"
    assert with_headers(tmp_path / "nvidia/cu13") == cuda_home()
    (tmp_path / "torch").mkdir()
    (tmp_path / "torch/version.py").write_text("cuda: Optional[str] = '13.0'\nhip = None\n")
    assert torch_cuda() == "13.0"


def refused(*arguments: Any, by: Any) -> str:
    with pytest.raises(WorkFailed) as caught:
        by(*arguments)
    assert not caught.value.transient
    assert "\n" not in caught.value.reason
    return caught.value.reason


@pytest.mark.skipif(nvidia_gpu()[0] is not None, reason="this machine has an NVIDIA GPU")
def test_without_a_driver_the_line_says_what_needs_which_cuda() -> None:
    words = refused("PyTorch 2.13.0", "13.0", by=require_gpu)
    assert words.startswith("no NVIDIA GPU: PyTorch 2.13.0 needs one and a driver for CUDA 13.0")
    words = refused("PyTorch 2.13.0+cpu", None, by=require_gpu)
    assert words == "PyTorch 2.13.0+cpu was built without CUDA: install what envs/gpu.txt names"


REFUSED = """
import os
from tightrope.errors import WorkFailed
from tightrope.machine.lacks import require_gpu, require_same_gpu
try:
    uuid = os.environ.get("SEEN")
    print(require_same_gpu(uuid) if uuid else require_gpu("PyTorch 2.13.0", "13.1"))
except WorkFailed as error:
    print(error.reason)
"""


MODES = [{"FAKE_MODE": "2"}, {"FAKE_MODE": "3"}]
MODES += [{"FAKE_MODE": "3", "CUDA_MPS_PIPE_DIRECTORY": "MPS"}, {"FAKE_MODE": "3", "FAKE_MIG": "1"}]
REFUSAL = (
    "the GPU is in compute mode {}, and a paired measurement has two processes on it; as root: "
    "nvidia-smi -c 0"
)


def test_an_old_driver_an_exclusive_mode_another_gpu_are_one_line(driver, tmp_path, monkeypatch):
    """A driver runs every CUDA of its major version; an instance may have its GPU's UUID."""
    monkeypatch.chdir(tmp_path)
    Path("MPS").mkdir()
    Path("MPS/control").touch()
    versions = [{"FAKE_CUDA": version} for version in ("12040", "13000", "13010", "14000")]
    first, second = {"SEEN": "aaaa-1111"}, {"SEEN": "bbbb-2222"}
    instance = {**first, "CUDA_VISIBLE_DEVICES": "MIG-cccc-3333"}
    versions += [{"FAKE_CUDA": "13010", **one} for one in MODES]
    cases = [*versions, first, instance, {**second, "CUDA_VISIBLE_DEVICES": "1"}, second]
    assert printed_each(REFUSED, driver, cases) == [
        "driver 580.65.06 is too old: it runs CUDA up to 12.4, PyTorch 2.13.0 needs CUDA 13.1; "
        "update the driver to 580 or later",
        *["None"] * 3,
        REFUSAL.format("prohibited"),
        REFUSAL.format("exclusive"),
        *["None"] * 5,
        "CUDA's first GPU is GPU-bbbb-2222, and not the one recorded, NVIDIA H100 80GB HBM3 "
        "(GPU-aaaa-1111): set CUDA_DEVICE_ORDER=PCI_BUS_ID, or CUDA_VISIBLE_DEVICES to a UUID",
    ]


def test_packages_for_a_gpu_are_looked_for_without_importing_them() -> None:
    lock = "install what envs/gpu.txt names"
    names = "install what envs/gpu-tensorrt.txt names"
    assert missing_packages("tensorrt") == f"no tensorrt: {names}"
    lacking = None if torch.version.cuda else f"PyTorch without CUDA: {lock}"
    assert missing_packages("compile") == lacking
    assert missing_packages("onnxruntime").startswith("no onnxruntime-gpu: ")
    # one that is imported all the same
    words = refused("tensorrt", by=engine_module)
    assert words.startswith("tensorrt cannot be imported (ModuleNotFoundError: No module named")
    assert words.endswith("on a GPU envs/gpu.txt and envs/gpu-tensorrt.txt, names")


def raise_error(words: str) -> None:
    raise RuntimeError(words)


def test_a_full_gpu_may_have_room_the_next_time() -> None:
    for words, full in {
        "CUDA out of memory. Tried to allocate 20.00 GiB.": True,
        "CUDA error: CUDA_ERROR_OUT_OF_MEMORY": True,
        "Failed to allocate memory for requested buffer of size 5": True,
        "Error Code 2: OutOfMemory (Requested size was 9 bytes.)": True,
        "cuBLAS error: CUBLAS_STATUS_NOT_SUPPORTED": False,
    }.items():
        with pytest.raises(WorkFailed) as caught:
            supervised(raise_error, words, limits=LIMITS)
        assert caught.value.transient is full
        assert words in caught.value.reason


def test_a_plan_belongs_to_one_tensorrt_and_one_gpu_unless_built_for_more() -> None:
    compatible, ampere = {"version_compatible": True}, {"hardware_compatibility": "ampere_plus"}
    for built, options, same in (
        ({}, {}, True),
        ({"tensorrt": "11.2"}, {}, False),
        ({"tensorrt": "11.2"}, compatible, True),
        ({"gpu": "NVIDIA L4"}, compatible, False),
        ({"gpu": "NVIDIA L4"}, ampere, True),
    ):
        own = {**HERE, **built}
        if same:
            require_same(own, HERE, {**OPTIONS, **options})
        else:
            words = refused(own, HERE, {**OPTIONS, **options}, by=require_same)
            assert f"by TensorRT {own['tensorrt']} for {own['gpu']}, here is" in words
            assert "TensorRT 11.4.0.106 on NVIDIA H200: delete the engine's folder" in words
    # TensorRT 10 is refused with a word on what changed
    words = refused("10.13.3.9", by=require_version)
    assert "TensorRT 10.13.3.9 found, 11 needed: since 11 the ONNX file" in words
    require_version("11.4.0.106")
    require_version("12.0.1")
