"""What a job on an NVIDIA GPU needs, and the one line that says what of it is missing."""

import ctypes
from importlib.util import find_spec
from pathlib import Path

from tightrope.host import nvidia_gpu
from tightrope.provenance import library_version
from tightrope.supervise import WorkFailed

LOCK = "install what envs/gpu.txt names"


def missing_packages(engine: str) -> str | None:
    """What is not installed that `engine` needs on a GPU and how to get it, else None.

    Found without importing anything: this is asked before each run.
    """
    if engine == "onnxruntime" or engine == "onnxruntime_tensorrt":
        return None if library_version("onnxruntime-gpu") else f"no onnxruntime-gpu: {LOCK}"
    if engine == "tensorrt":
        missing = [name for name in ("tensorrt", "polygraphy") if find_spec(name) is None]
        if missing:
            return f"no {' and no '.join(missing)}: {LOCK}"
    return None if torch_has_cuda() else f"PyTorch without CUDA: {LOCK}"


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
    gpu, driver = nvidia_gpu()
    supported = driver_cuda()
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
