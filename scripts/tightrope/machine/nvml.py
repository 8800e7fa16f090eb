"""The NVIDIA GPU of this process, as NVML describes it; CUDA is not initialized."""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any


def nvidia_gpu() -> tuple[str | None, str | None]:
    """Return model and driver version of the GPU that CUDA uses first, (None, None) without one."""
    import pynvml

    with first_gpu() as gpu:
        if gpu is None:
            return None, None
        return pynvml.nvmlDeviceGetName(gpu), pynvml.nvmlSystemGetDriverVersion()


def free_device_bytes() -> int | None:
    """Return the free memory of the GPU that CUDA uses first, None where it is not reported."""
    import pynvml

    with first_gpu() as gpu, suppress(pynvml.NVMLError):  # some virtual GPUs do not report it
        if gpu is not None:
            return int(pynvml.nvmlDeviceGetMemoryInfo(gpu).free)
    return None


def held_gpu() -> Any | None:
    """Return the handle that `first_gpu` yields; NVML stays open until this process ends."""
    import pynvml

    with suppress(pynvml.NVMLError):  # no library or no driver
        pynvml.nvmlInit()
        return first_visible()
    return None


def known(read: Callable[..., Any], *arguments: Any) -> Any | None:
    """Return what a function of NVML returns, None where the GPU or driver does not support it."""
    import pynvml

    with suppress(pynvml.NVMLError):
        return read(*arguments)
    return None


@contextmanager
def first_gpu() -> Iterator[Any | None]:
    """Yield the NVML handle of the GPU that CUDA uses first, None without a GPU or driver.

    It is the first entry of `CUDA_VISIBLE_DEVICES`: an index, a UUID or the start of one, of a GPU
    or of a MIG instance (CUDA C++ Programming Guide, "CUDA Environment Variables"). NVML counts in
    the order of the bus; CUDA does so too where all GPUs are alike, or `CUDA_DEVICE_ORDER` is
    `PCI_BUS_ID`.
    """
    import pynvml

    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError:  # no library or no driver
        yield None
        return
    try:
        yield first_visible()
    finally:
        pynvml.nvmlShutdown()


def first_visible() -> Any | None:
    """Return the handle of the first entry of `CUDA_VISIBLE_DEVICES`, None where there is none."""
    import pynvml

    entry = os.environ.get("CUDA_VISIBLE_DEVICES", "0").split(",")[0].strip()
    try:
        if entry.startswith("MIG-"):
            return pynvml.nvmlDeviceGetHandleByUUID(entry)
        gpus = [
            pynvml.nvmlDeviceGetHandleByIndex(index) for index in range(pynvml.nvmlDeviceGetCount())
        ]
        if entry.startswith("GPU-"):
            named = [gpu for gpu in gpus if pynvml.nvmlDeviceGetUUID(gpu).startswith(entry)]
            return named[0] if len(named) == 1 else None
        return gpus[int(entry)] if entry.isdecimal() and int(entry) < len(gpus) else None
    except pynvml.NVMLError:  # a GPU that fell off the bus, a MIG instance that is gone
        return None
