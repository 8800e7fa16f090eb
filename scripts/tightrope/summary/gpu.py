"""The GPU while a shape was timed: its clocks, throttling, temperature, power and memory."""

import statistics
from typing import Any

from tightrope.summary.model_types import Gpu

Facts = dict[str, Any]


def gpu_entry(shape: Facts) -> Gpu | None:
    """Return `gpu` of a latency row, over the states after all blocks; None without a GPU.

    The power is that after the long blocks, where there are some: drivers average it over up to a
    second, so that after a short block it includes the blocks of other engines.
    """
    states = [state for state in shape.get("gpu") or () if state]
    if not states:
        return None
    after_long = [block["gpu"] for block in shape.get("long_blocks") or () if block["gpu"]]
    clocks = values(states, "sm_clock_mhz")
    reasons = values(states, "throttled")
    return {
        "sm_clock_mhz": median(clocks),
        "lowest_sm_clock_mhz": min(clocks, default=None),
        "memory_clock_mhz": median(values(states, "memory_clock_mhz")),
        "power_w": median(values(after_long or states, "power_w")),
        "temperature_c": max(values(states, "temperature_c"), default=None),
        "throttled": sorted({reason for one in reasons for reason in one}) if reasons else None,
        "clocks_locked": clocks_locked(states),
        "other_processes": max(values(states, "other_processes"), default=None),
        "memory_bytes": max(values(states, "memory_bytes"), default=None),
    }


def clocks_locked(states: list[Facts]) -> bool | None:
    """Return whether a setting held the clock of the SMs, None where NVML does not tell.

    True where the driver names the setting of application clocks as their limit all the time, False
    where the clock changed although nothing throttled it. NVML has no function that returns locked
    clocks: a constant clock may be locked, or at the highest that the GPU reaches.
    """
    limited = values(states, "application_clocks")
    if limited and all(limited):
        return True
    throttled = any(values(states, "throttled"))
    changed = len(set(values(states, "sm_clock_mhz"))) > 1
    return False if changed and not throttled else None


def values(states: list[Facts], name: str) -> list[Any]:
    """Return the known values of a field of the states."""
    return [state[name] for state in states if state[name] is not None]


def median(numbers: list[float]) -> float | None:
    """Return the median, None without numbers."""
    return statistics.median(numbers) if numbers else None
