"""What a machine lacks to build or run a variant, each with a one-line message."""

import ctypes
import os
import shutil
import sysconfig
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from tightrope.artifacts.provenance import library_version
from tightrope.engine_table import ENGINES, INSTRUCTIONS
from tightrope.errors import WorkFailed
from tightrope.machine.host import describe_host
from tightrope.machine.nvml import REMEDY, nvidia_gpu
from tightrope.variants import Variant

LOCK = "install what envs/gpu.txt names"
# oldest driver per major version of CUDA
DRIVERS = {"12": "525", "13": "580"}


def missing_packages(engine: str) -> str | None:
    """Return what `engine` lacks on a GPU and how to install it, else None.

    Checks without importing the packages, because this runs before each run.
    """
    if engine == "onnxruntime":
        known = library_version("onnxruntime-gpu") is not None
        return None if known else f"no onnxruntime-gpu: {LOCK}"
    if engine == "inductor" and torch_has_cuda():
        return missing_toolkit()
    if engine == "tensorrt":
        lacking = [name for name in ("tensorrt", "polygraphy") if find_spec(name) is None]
        if lacking:
            return f"no {' and no '.join(lacking)}: {LOCK}"
    return None if torch_has_cuda() else f"PyTorch without CUDA: {LOCK}"


def missing_toolkit() -> str | None:
    """Return what AOTInductor lacks to compile for a GPU: CUDA headers, which pip packages hide."""
    if os.environ.get("CUDA_HOME") or shutil.which("nvcc") or Path("/usr/local/cuda").is_dir():
        return None
    return "no CUDA toolkit: AOTInductor compiles with its headers; install it, or set CUDA_HOME"


def torch_has_cuda() -> bool:
    """Return whether the installed PyTorch was built for CUDA."""
    found = find_spec("torch")
    folders = (found.submodule_search_locations or ()) if found else ()
    return any(Path(folder, "lib", "libtorch_cuda.so").is_file() for folder in folders)


def require_gpu(library: str, cuda: str | None) -> None:
    """Raise WorkFailed unless the driver of this machine supports the CUDA version of `library`.

    `cuda` is the version of CUDA that it was built with, such as 13.0, None for a build without
    CUDA. Within one major version of CUDA an older driver runs newer libraries
    (https://docs.nvidia.com/deploy/cuda-compatibility/).
    """
    if cuda is None:
        raise WorkFailed(f"{library} was built without CUDA: {LOCK}", transient=False)
    host, supported = describe_host(), driver_cuda()
    gpu, driver = host["gpu"], host["driver"]
    if gpu is None or supported is None:
        raise WorkFailed(
            f"no NVIDIA GPU: {library} needs one and a driver for CUDA {cuda}; NVML and "
            "libcuda.so.1 name none here",
            transient=False,
        )
    major = cuda.partition(".")[0]
    if supported[0] < int(major):
        oldest = f" to {DRIVERS[major]} or later" if major in DRIVERS else ""
        raise WorkFailed(
            f"driver {driver} is too old: it runs CUDA up to {supported[0]}.{supported[1]}, "
            f"{library} needs CUDA {cuda}; update the driver{oldest}",
            transient=False,
        )


def require_same_gpu(seen: str) -> None:
    """Raise WorkFailed where CUDA's first GPU is not the one that is recorded.

    `seen` is the UUID that CUDA gives its first GPU, without a prefix. For a MIG instance CUDA may
    give that of its GPU, so that the two cannot be compared.
    """
    name, _, uuid = nvidia_gpu()
    if uuid is not None and uuid.startswith("GPU-") and uuid != f"GPU-{seen}":
        raise WorkFailed(
            f"CUDA's first GPU is GPU-{seen}, and not the one recorded, {name} ({uuid}): {REMEDY}",
            transient=False,
        )


def driver_cuda() -> tuple[int, int] | None:
    """Return the newest CUDA version that the driver supports as (major, minor), else None."""
    try:
        driver = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return None
    number = ctypes.c_int(0)
    if driver.cuDriverGetVersion(ctypes.byref(number)):
        return None
    return number.value // 1000, number.value % 1000 // 10


def missing_compiler() -> str | None:
    """Return what is missing to compile C++ for this Python and how to install it, else None."""
    # the compiler that PyTorch's Inductor looks for
    compiler = os.environ.get("CXX", "g++")
    if not shutil.which(compiler):
        return (
            f"no C++ compiler: install g++ (Debian: apt-get install g++), or name one in CXX; "
            f"there is no {compiler}"
        )
    if not Path(sysconfig.get_path("include"), "Python.h").is_file():
        return "no Python.h: install the headers of Python (Debian: apt-get install python3-dev)"
    return None


def missing_instructions(variant: Variant, host: dict[str, Any]) -> str | None:
    """Return why a CPU like `host` would only emulate `variant`, None where it runs natively."""
    number = variant.precision.removeprefix("int8-")
    used = (ENGINES[variant.engine].instructions or {}).get(number, ())
    if variant.device != "cpu" or not used or set(used) & set(host["isa"]):
        return None
    other = f" that {variant.engine} uses" if set(INSTRUCTIONS[number]) & set(host["isa"]) else ""
    return f"not supported by this CPU: no {number} instructions{other}; it would be emulated"
