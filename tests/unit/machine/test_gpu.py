"""What is missing for a GPU is one line, with the versions found and needed."""

import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from nvml_driver import build_driver, printed_each
from tightrope.artifacts.provenance import library_version
from tightrope.engines.load import engine_module
from tightrope.errors import WorkFailed
from tightrope.jobs.child import Limits, supervised
from tightrope.machine import gpu
from tightrope.machine.gpu import (
    LINKED,
    linked_tensorrt,
    loaded,
    missing_packages,
    missing_toolkit,
    require_gpu,
    without_tensorrt,
)
from tightrope.machine.nvml import nvidia_gpu
from tightrope.runtimes.tensorrt.version import require_same, require_version

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
    assert missing_packages("onnxruntime_tensorrt").startswith("no onnxruntime-gpu: ")


@pytest.mark.parametrize(
    ("needed", "words"),
    [
        (None, "no torch-tensorrt: docs/engines.md says how to install torch-tensorrt"),
        ("torch<2.14.0,>=2.13.0", "no tensorrt: install what envs/gpu.txt names"),
        ("torch<2.10.0,>=2.9.0", "torch-tensorrt 2.9.0 needs torch <2.10.0,>=2.9.0, here is 2."),
    ],
)
def test_torch_tensorrt_is_for_one_version_of_pytorch(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, needed: str | None, words: str
) -> None:
    """Of installed packages only their metadata counts, here that of one in a folder."""
    if library_version("torch-tensorrt"):
        pytest.skip("torch-tensorrt is installed here")
    if needed:
        folder = tmp_path / "torch_tensorrt-2.9.0.dist-info"
        folder.mkdir()
        facts = "Metadata-Version: 2.1\nName: torch-tensorrt\nVersion: 2.9.0\n"
        (folder / "METADATA").write_text(f"{facts}Requires-Dist: {needed}\n")
        monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(gpu, "library_version", library_version.__wrapped__)
    assert missing_packages("torch_tensorrt").startswith(words)


def test_a_runtime_in_no_lock_file_has_a_remedy_of_its_own() -> None:
    words = refused("torch_tensorrt", by=engine_module)
    assert words.startswith(
        "torch_tensorrt cannot be imported (ModuleNotFoundError: No module named"
    )
    assert words.endswith("how to install torch-tensorrt, which no lock file has")


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


@pytest.mark.parametrize("engine", LINKED)
def test_a_library_linked_to_a_tensorrt_that_is_not_there_is_named(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, engine: str
) -> None:
    package, path = LINKED[engine]
    library = tmp_path / package / path
    library.parent.mkdir(parents=True)
    (tmp_path / package / "__init__.py").write_text("")
    library.write_bytes(b"\x7fELF\x00libcublas.so.13\x00libnvinfer.so.99\x00")
    monkeypatch.setitem(sys.modules, package, None)
    monkeypatch.delitem(sys.modules, package)
    monkeypatch.syspath_prepend(tmp_path)
    assert linked_tensorrt(engine) == ["libnvinfer.so.99"]
    assert not loaded("libnvinfer.so.99")
    assert loaded("libc.so.6")
    words = without_tensorrt(package, "libnvinfer.so.99")
    assert f"{package} is linked to libnvinfer.so.99, which cannot be loaded" in words
    assert words.endswith("put the libraries of TensorRT 99 on LD_LIBRARY_PATH")


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
