"""The NVIDIA GPU of this process and its state, as NVML describes it; CUDA is not initialized."""

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, NamedTuple

from tightrope.machine.processes import family

REMEDY = "set CUDA_DEVICE_ORDER=PCI_BUS_ID, or CUDA_VISIBLE_DEVICES to a UUID"
# bits of nvmlClocksEventReasons in NVIDIA's nvml.h; those of an idle GPU and of the setting of
# application clocks do not throttle
APPLICATION_CLOCKS = 0x2
# percent of the time in which a process has to run kernels so that it computes
FEWEST_PERCENT = 5
THROTTLES = {
    0x04: "power cap",
    0x08: "hardware slowdown",
    0x10: "sync boost",
    0x20: "thermal slowdown",
    0x40: "hardware thermal slowdown",
    0x80: "power brake",
    0x100: "display clocks",
}
State = dict[str, Any]


class Gpu(NamedTuple):
    """Model, driver version and UUID of a GPU or a MIG instance, all None without one."""

    name: str | None = None
    driver: str | None = None
    uuid: str | None = None


def nvidia_gpu() -> Gpu:
    """Return the GPU that CUDA uses first."""
    import pynvml

    with first_gpu() as gpu:
        if gpu is None:
            return Gpu()
        return Gpu(
            pynvml.nvmlDeviceGetName(gpu),
            pynvml.nvmlSystemGetDriverVersion(),
            known(pynvml.nvmlDeviceGetUUID, gpu),
        )


def ambiguous_gpu() -> str | None:
    """Return a line where CUDA may use another GPU than NVML names, None where it cannot.

    CUDA counts GPUs from the fastest on, unless `CUDA_DEVICE_ORDER` is `PCI_BUS_ID`; NVML in the
    order of the bus.
    """
    import pynvml

    entry, order = first_entry(), os.environ.get("CUDA_DEVICE_ORDER")
    with first_gpu() as gpu:
        if gpu is None or not entry.isdecimal() or order == "PCI_BUS_ID":
            return None
        names = list(dict.fromkeys(map(pynvml.nvmlDeviceGetName, every_gpu())))
    if len(names) == 1:
        return None
    return (
        f"the GPUs of this machine are not alike ({', '.join(names)}), and CUDA counts them from "
        f"the fastest on: its device {entry} may be another than the one recorded, "
        f"{nvidia_gpu().name}; {REMEDY}"
    )


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
    or of a MIG instance (CUDA C++ Programming Guide, "CUDA Environment Variables"). Of a GPU that
    is divided into MIG instances CUDA uses the first one. NVML counts in the order of the bus; CUDA
    does so too where all GPUs are alike, or `CUDA_DEVICE_ORDER` is `PCI_BUS_ID`.
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

    entry = first_entry()
    try:
        if entry.startswith("MIG-"):
            return pynvml.nvmlDeviceGetHandleByUUID(entry)
        gpus = every_gpu()
        if entry.startswith("GPU-"):
            named = [gpu for gpu in gpus if pynvml.nvmlDeviceGetUUID(gpu).startswith(entry)]
            return divided(named[0]) if len(named) == 1 else None
        return divided(gpus[int(entry)]) if entry.isdecimal() and int(entry) < len(gpus) else None
    except pynvml.NVMLError:  # a GPU that fell off the bus, a MIG instance that is gone
        return None


def first_entry() -> str:
    """Return the first entry of `CUDA_VISIBLE_DEVICES`, 0 where it is not set."""
    return os.environ.get("CUDA_VISIBLE_DEVICES", "0").split(",")[0].strip()


def every_gpu() -> list[Any]:
    """Return the handles of all GPUs in the order of the bus; raise NVMLError for a lost one."""
    import pynvml

    count = pynvml.nvmlDeviceGetCount()
    return [pynvml.nvmlDeviceGetHandleByIndex(index) for index in range(count)]


def divided(gpu: Any) -> Any | None:
    """Return the first MIG instance of a GPU in MIG mode, None without any; else the GPU itself."""
    import pynvml

    mode = known(pynvml.nvmlDeviceGetMigMode, gpu)
    if mode is None or mode[0] != pynvml.NVML_DEVICE_MIG_ENABLE:
        return gpu
    places = range(pynvml.nvmlDeviceGetMaxMigDeviceCount(gpu))
    found = (known(pynvml.nvmlDeviceGetMigDeviceHandleByIndex, gpu, place) for place in places)
    return next((one for one in found if one is not None), None)


class GpuReader:
    """Reads the state of a GPU by its NVML handle, in a process that computes on it."""

    def __init__(self, gpu: Any) -> None:
        self.gpu = gpu
        self.family: set[int] = set()
        self.asked_us = time.time_ns() // 1000

    def read(self) -> State:
        """Return the state now; a value that this GPU or its driver does not report is None.

        `sm_clock_mhz`, `memory_clock_mhz`, `temperature_c` and `power_w`; `throttled`, the reasons
        in words; `application_clocks`, whether a setting of these limits the clocks;
        `other_processes`, how many hold memory on it besides those of this job;
        `computing_processes`, how many of these ran kernels since the last state; and
        `memory_bytes`, which this process uses of it.
        """
        import pynvml

        gpu = self.gpu
        power = known(pynvml.nvmlDeviceGetPowerUsage, gpu)
        return {
            "sm_clock_mhz": known(pynvml.nvmlDeviceGetClockInfo, gpu, pynvml.NVML_CLOCK_SM),
            "memory_clock_mhz": known(pynvml.nvmlDeviceGetClockInfo, gpu, pynvml.NVML_CLOCK_MEM),
            "temperature_c": known(
                pynvml.nvmlDeviceGetTemperature, gpu, pynvml.NVML_TEMPERATURE_GPU
            ),
            "power_w": None if power is None else power / 1e3,
            **limits_in_words(clock_limits(gpu)),
            **self.sharing(known(pynvml.nvmlDeviceGetComputeRunningProcesses, gpu)),
        }

    def sharing(self, processes: list[Any] | None) -> State:
        """Return what `read` says of processes, from NVML's list of them.

        All is None where this process is not in the list: a container hides the processes of its
        host, or numbers its own differently.
        """
        used = {one.pid: one.usedGpuMemory for one in processes or ()}
        if os.getpid() not in used:
            return dict.fromkeys(("other_processes", "computing_processes", "memory_bytes"))
        if used.keys() - self.family:  # to ask for it each time would take milliseconds
            self.family = family()
        others = used.keys() - self.family
        return {
            "other_processes": len(others),
            "computing_processes": self.computing(others) if others else 0,
            "memory_bytes": used[os.getpid()],
        }

    def computing(self, processes: set[int]) -> int | None:
        """Return how many of the processes ran kernels since the last call.

        NVML samples once or several times a second, so that this may be told of a later block. Of
        a MIG instance it tells nothing: None.
        """
        import pynvml

        try:
            samples = pynvml.nvmlDeviceGetProcessUtilization(self.gpu, self.asked_us)
        except pynvml.NVMLError_NotFound:  # nothing ran
            return 0
        except pynvml.NVMLError:
            return None
        self.asked_us = max([self.asked_us, *(one.timeStamp for one in samples)])
        return len({one.pid for one in samples if one.smUtil >= FEWEST_PERCENT} & processes)


def clock_limits(gpu: Any) -> int | None:
    """Return the bits of what limits the clocks, None where it is not reported."""
    import pynvml

    bits = known(pynvml.nvmlDeviceGetCurrentClocksEventReasons, gpu)
    if bits is None:  # older drivers have only its former name
        bits = known(pynvml.nvmlDeviceGetCurrentClocksThrottleReasons, gpu)
    return bits


def limits_in_words(bits: int | None) -> State:
    """Return `throttled` and `application_clocks`, see `GpuReader.read`, from the bits."""
    if bits is None:
        return {"throttled": None, "application_clocks": None}
    return {
        "throttled": [word for bit, word in THROTTLES.items() if bits & bit],
        "application_clocks": bool(bits & APPLICATION_CLOCKS),
    }
