"""Clocks, temperature, power, throttling, processes and memory of a GPU, as NVML reports them."""

import os
from typing import Any

from tightrope.machine.nvml import known
from tightrope.machine.processes import family

# bits of nvmlClocksEventReasons in NVIDIA's nvml.h; those of an idle GPU and of the setting of
# application clocks do not throttle
APPLICATION_CLOCKS = 0x2
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


class GpuState:
    """Reads the state of a GPU by its NVML handle, in a process that computes on it."""

    def __init__(self, gpu: Any) -> None:
        self.gpu = gpu
        self.family: set[int] = set()

    def read(self) -> State:
        """Return the state now; a value that this GPU or its driver does not report is None.

        `sm_clock_mhz`, `memory_clock_mhz`, `temperature_c` and `power_w`; `throttled`, the reasons
        in words; `application_clocks`, whether a setting of these limits the clocks;
        `other_processes`, how many processes compute on it besides those of this job; and
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
        """Return `other_processes` and `memory_bytes` from NVML's list of processes.

        Both are None where this process is not in the list: a container hides the processes of its
        host, or numbers its own differently.
        """
        used = {one.pid: one.usedGpuMemory for one in processes or ()}
        if os.getpid() not in used:
            return {"other_processes": None, "memory_bytes": None}
        if used.keys() - self.family:  # to ask for it each time would take milliseconds
            self.family = family()
        others = len(used.keys() - self.family)
        return {"other_processes": others, "memory_bytes": used[os.getpid()]}


def clock_limits(gpu: Any) -> int | None:
    """Return the bits of what limits the clocks, None where it is not reported."""
    import pynvml

    bits = known(pynvml.nvmlDeviceGetCurrentClocksEventReasons, gpu)
    if bits is None:  # older drivers have only its former name
        bits = known(pynvml.nvmlDeviceGetCurrentClocksThrottleReasons, gpu)
    return bits


def limits_in_words(bits: int | None) -> State:
    """Return `throttled` and `application_clocks`, see `GpuState.read`, from the bits."""
    if bits is None:
        return {"throttled": None, "application_clocks": None}
    return {
        "throttled": [word for bit, word in THROTTLES.items() if bits & bit],
        "application_clocks": bool(bits & APPLICATION_CLOCKS),
    }
