"""What a machine lacks to build or run a variant, each with a one-line message."""

import ctypes
import os
import re
import shutil
import sysconfig
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from tightrope.artifacts.provenance import library_version
from tightrope.engine_table import ENGINES, INSTRUCTIONS
from tightrope.errors import WorkFailed
from tightrope.machine.host import describe_host
from tightrope.machine.nvml import REMEDY, first_gpu, known, nvidia_gpu
from tightrope.variants import Variant

LOCK = "install what envs/gpu.txt names"
# oldest driver per major version of CUDA
DRIVERS = {"12": "525", "13": "580"}
# what AOTInductor's own headers include
HEADERS = ("cuda.h", "cuda_runtime_api.h", "crt/host_config.h", "nv/target")
EXCLUSIVE, PROHIBITED = 3, 2  # of nvmlComputeMode_t
MPS = "/tmp/nvidia-mps"


def missing_packages(engine: str) -> str | None:
    """Return what `engine` lacks on a GPU and how to install it, else None.

    Checks without importing the packages, because this runs before each run.
    """
    if engine == "onnxruntime" and library_version("onnxruntime-gpu") is None:
        return f"no onnxruntime-gpu: {LOCK}"
    if engine == "tensorrt":
        lacking = [name for name in ("tensorrt", "polygraphy") if find_spec(name) is None]
        if lacking:
            return f"no {' and no '.join(lacking)}: install what envs/gpu-tensorrt.txt names"
    if torch_cuda() is None:
        return f"PyTorch without CUDA: {LOCK}"
    return missing_toolkit() if engine == "inductor" else None


def missing_toolkit() -> str | None:
    """Return what AOTInductor lacks to compile for a GPU: CUDA's headers, where they are not."""
    if cuda_home() is not None:
        return None
    return (
        f"no {', '.join(HEADERS)} in include of {' or of '.join(map(str, toolkits()))}: "
        f"AOTInductor compiles with them; {LOCK}, or set CUDA_HOME to a CUDA toolkit"
    )


def cuda_home() -> Path | None:
    """Return the folder that AOTInductor has to find in CUDA_HOME, None without the headers."""
    wanted = (one for one in toolkits() if all(Path(one, "include", h).is_file() for h in HEADERS))
    return next(wanted, None)


def toolkits() -> list[Path]:
    """Return where CUDA's headers may be: in what the user names, else in the folders to look in.

    First those of the packages for the CUDA of PyTorch; a toolkit beside it may be of another.
    """
    if named := os.environ.get("CUDA_HOME") or os.environ.get("CUDA_PATH"):
        return [Path(named)]
    compiler = shutil.which("nvcc")
    own = [Path(folder, "cu13") for folder in folders_of("nvidia")]
    return [*own, *([Path(compiler).parents[1]] if compiler else []), Path("/usr/local/cuda")]


def torch_cuda() -> str | None:
    """Return the CUDA that the installed PyTorch was built for, such as 13.0, None without."""
    for folder in folders_of("torch"):
        text = Path(folder, "version.py").read_text()
        if found := re.search(r"^cuda\b.*= '([\d.]+)'", text, re.MULTILINE):
            return found[1]
    return None


def folders_of(package: str) -> list[str]:
    """Return the folders of a package, which is not imported."""
    found = find_spec(package)
    return list(found.submodule_search_locations or ()) if found else []


def refusal_of_gpu(library: str = "PyTorch", cuda: str | None = None) -> str | None:
    """Return why nothing can be timed on the GPU here, None where it can or where there is none.

    Its driver is too old for `cuda`, by default that of PyTorch, or its compute mode lets fewer
    processes in than the two of a paired measurement.
    """
    supported, cuda = driver_cuda(), cuda or torch_cuda()
    if nvidia_gpu().name is None or supported is None or cuda is None:
        return None
    major = cuda.partition(".")[0]
    if supported[0] < int(major):
        oldest = f" to {DRIVERS[major]} or later" if major in DRIVERS else ""
        return (
            f"driver {nvidia_gpu().driver} is too old: it runs CUDA up to "
            f"{supported[0]}.{supported[1]}, {library} needs CUDA {cuda}; update the driver{oldest}"
        )
    import pynvml

    # the server of MPS is one process, for all that use it
    shared = Path(os.environ.get("CUDA_MPS_PIPE_DIRECTORY", MPS), "control").exists()
    with first_gpu() as gpu:
        mode = None if gpu is None else known(pynvml.nvmlDeviceGetComputeMode, gpu)
    if mode == PROHIBITED or (mode == EXCLUSIVE and not shared):
        return (
            f"the GPU is in compute mode {'prohibited' if mode == PROHIBITED else 'exclusive'}, "
            "and a paired measurement has two processes on it; as root: nvidia-smi -c 0"
        )
    return None


def require_gpu(library: str, cuda: str | None) -> None:
    """Raise WorkFailed unless the GPU here lets `library` run, see `refusal_of_gpu`.

    `cuda` is the version of CUDA that it was built with, such as 13.0, None for a build without
    CUDA. Within one major version of CUDA an older driver runs newer libraries
    (https://docs.nvidia.com/deploy/cuda-compatibility/).
    """
    if cuda is None:
        raise WorkFailed(f"{library} was built without CUDA: {LOCK}", transient=False)
    if describe_host()["gpu"] is None or driver_cuda() is None:
        raise WorkFailed(
            f"no NVIDIA GPU: {library} needs one and a driver for CUDA {cuda}; NVML and "
            "libcuda.so.1 name none here",
            transient=False,
        )
    if refused := refusal_of_gpu(library, cuda):
        raise WorkFailed(refused, transient=False)


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
