"""A stand-in for a package of the environment that a machine with a GPU may lack.

nvidia-ml-py asks the driver for the energy, the clocks and the processes of the GPU, which then are
not known. As a plugin of pytest (`-p stand_ins`) this module puts it there before the first
conftest.
"""

import importlib.util
import os
import subprocess
import sys
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

VERSION = Path("/proc/driver/nvidia/version")
# PyTorch in a process of its own: a process that has used CUDA must not fork
NAME = """
import torch
if torch.cuda.is_available():
    print(torch.cuda.get_device_name(), torch.cuda.get_device_properties(0).uuid, sep="\\n")
"""
SECONDS = 120


def install() -> list[str]:
    """Put it in the place of what is not installed; return the names of such modules."""
    makers = {"pynvml": pynvml}
    missing = [name for name in makers if importlib.util.find_spec(name) is None]
    sys.modules.update({name: makers[name]() for name in missing})
    return missing


def pytest_load_initial_conftests() -> None:
    """Install them for the tests."""
    install()


def pynvml() -> ModuleType:
    """Return a module that knows a GPU's name, UUID and driver, and raises NVMLError for all else.

    Name and UUID are those that PyTorch gives; without a GPU `nvmlInit` raises NVMLError.
    """
    module = ModuleType("pynvml")
    error = type("NVMLError", (Exception,), {})

    def unknown(*_: Any) -> Any:
        raise error("nvidia-ml-py is not installed")

    def start() -> None:
        if not gpu_name():
            unknown()

    def other(name: str) -> Any:
        if not name.casefold().startswith("nvml"):
            raise AttributeError(name)
        return 0 if name.startswith("NVML_") else unknown

    entry = os.environ.get("CUDA_VISIBLE_DEVICES", "0").split(",")[0].strip()
    functions = {
        "nvmlInit": start,
        "nvmlShutdown": lambda: None,
        "nvmlDeviceGetCount": lambda: int(entry) + 1 if entry.isdecimal() else 1,
        "nvmlDeviceGetHandleByIndex": lambda index: "the GPU",
        "nvmlDeviceGetHandleByUUID": lambda uuid: "the GPU",
        "nvmlDeviceGetUUID": lambda gpu: f"GPU-{gpu_uuid()}",
        "nvmlDeviceGetName": lambda gpu: gpu_name(),
        "nvmlSystemGetDriverVersion": lambda: driver_version(),
    }
    module.__dict__.update(functions, NVMLError=error)
    module.__dict__["__getattr__"] = other
    return module


def gpu_name() -> str | None:
    """Return the name of the GPU that CUDA uses first, None without one or without PyTorch."""
    return next(iter(name_and_uuid()), None)


def gpu_uuid() -> str:
    """Return the UUID of that GPU, without a prefix."""
    return name_and_uuid()[1]


@cache
def name_and_uuid() -> list[str]:
    """Return name and UUID of the GPU that CUDA uses first, [] without one or without PyTorch."""
    words = [sys.executable, "-c", NAME]
    try:
        done = subprocess.run(words, capture_output=True, text=True, timeout=SECONDS, check=False)
    except subprocess.TimeoutExpired:
        return []
    return done.stdout.splitlines()


def driver_version() -> str:
    """Return the version in the kernel module's own words, or that it is not known."""
    if not VERSION.is_file():
        return "not known"
    words = VERSION.read_text().splitlines()[0].split()
    return next((word for word in words if word[0].isdigit() and "." in word), "not known")
