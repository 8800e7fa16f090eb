"""What a job on an NVIDIA GPU needs, and the one line that says what of it is missing."""

import ctypes
import os
import re
import shutil
import subprocess
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path

from tightrope.artifacts.provenance import library_version
from tightrope.errors import WorkFailed
from tightrope.machine.host import describe_host

LOCK = "install what envs/gpu.txt names"
NVINFER = re.compile(rb"libnvinfer\.so\.\d+")


def missing_packages(engine: str) -> str | None:
    """What is not installed that `engine` needs on a GPU and how to get it, else None.

    Found without importing anything: this is asked before each run.
    """
    if engine.startswith("onnxruntime"):
        if library_version("onnxruntime-gpu") is None:
            return f"no onnxruntime-gpu: {LOCK}"
        linked = linked_tensorrt() if engine == "onnxruntime_tensorrt" else []
        return next((without_tensorrt(one) for one in linked if not loaded(one)), None)
    if engine == "inductor" and torch_has_cuda():
        return missing_toolkit()
    if engine == "tensorrt":
        missing = [name for name in ("tensorrt", "polygraphy") if find_spec(name) is None]
        if missing:
            return f"no {' and no '.join(missing)}: {LOCK}"
    return None if torch_has_cuda() else f"PyTorch without CUDA: {LOCK}"


def free_device_bytes() -> float | None:
    """Free memory of the first NVIDIA GPU, None where the driver does not say."""
    program = shutil.which("nvidia-smi")
    if program is None:
        return None
    words = [program, "--query-gpu=memory.free", "--format=csv,noheader,nounits"]
    told = subprocess.run(words, capture_output=True, text=True, check=False).stdout.split()
    return 2**20 * float(told[0]) if told and told[0].isdigit() else None


def linked_tensorrt() -> list[str]:
    """The libraries to which ONNX Runtime's TensorRT provider is linked, as libnvinfer.so.10.

    A package is linked to one major version, not always the one that is installed beside it.
    """
    found = find_spec("onnxruntime")
    folders = (found.submodule_search_locations or ()) if found else ()
    files = [Path(one, "capi/libonnxruntime_providers_tensorrt.so") for one in folders]
    contents = [file.read_bytes() for file in files if file.is_file()]
    return sorted({word.decode() for one in contents for word in NVINFER.findall(one)})


def loaded(library: str) -> bool:
    """Whether a shared library can be loaded, from the loader's path or from TensorRT's package."""
    found = find_spec("tensorrt_libs")
    folders = (found.submodule_search_locations or ()) if found else ()
    for path in (library, *(str(Path(folder, library)) for folder in folders)):
        with suppress(OSError):
            ctypes.CDLL(path, mode=ctypes.RTLD_GLOBAL)
            return True
    return False


def without_tensorrt(library: str) -> str:
    """The line that names a library of TensorRT which ONNX Runtime lacks."""
    return (
        f"onnxruntime-gpu is linked to {library}, which cannot be loaded: put the libraries of "
        f"TensorRT {library.rpartition('.')[2]} on LD_LIBRARY_PATH"
    )


def missing_toolkit() -> str | None:
    """What AOTInductor lacks to compile for a GPU: headers of CUDA, which pip's packages hide."""
    if os.environ.get("CUDA_HOME") or shutil.which("nvcc") or Path("/usr/local/cuda").is_dir():
        return None
    return "no CUDA toolkit: AOTInductor compiles with its headers; install it, or set CUDA_HOME"


def torch_has_cuda() -> bool:
    """Whether the installed PyTorch was built for CUDA."""
    found = find_spec("torch")
    folders = (found.submodule_search_locations or ()) if found else ()
    return any(Path(folder, "lib", "libtorch_cuda.so").is_file() for folder in folders)


def require_gpu(library: str, cuda: str | None) -> None:
    """Raise WorkFailed unless the driver of this machine runs what `library` was built for.

    `cuda` is the version of CUDA that it was built with, such as 13.0, None where it has none.
    Within one major version of CUDA an older driver runs newer libraries
    (https://docs.nvidia.com/deploy/cuda-compatibility/).
    """
    if cuda is None:
        raise WorkFailed(f"{library} was built without CUDA: {LOCK}", transient=False)
    host, supported = describe_host(), driver_cuda()
    gpu, driver = host["gpu"], host["driver"]
    if gpu is None or supported is None:
        raise WorkFailed(
            f"no NVIDIA GPU: {library} needs one and a driver for CUDA {cuda}; nvidia-smi and "
            "libcuda.so.1 name none here",
            transient=False,
        )
    if supported[0] < int(cuda.partition(".")[0]):
        raise WorkFailed(
            f"driver {driver} is too old: it runs CUDA up to {supported[0]}.{supported[1]}, "
            f"{library} needs CUDA {cuda}; update the driver",
            transient=False,
        )


def driver_cuda() -> tuple[int, int] | None:
    """The newest CUDA that the driver runs, as (major, minor); None without a driver."""
    try:
        driver = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return None
    number = ctypes.c_int(0)
    if driver.cuDriverGetVersion(ctypes.byref(number)):
        return None
    return number.value // 1000, number.value % 1000 // 10
