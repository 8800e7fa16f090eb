"""States of a GPU as records hold them, and a row of the summary on one."""

from typing import Any

BOTH = {
    **{"sm_clock_mhz": 1980, "memory_clock_mhz": 2619, "temperature_c": 61, "power_w": 400.0},
    **{"throttled": [], "other_processes": 0},
}
STATE = {**BOTH, "computing_processes": 0, "application_clocks": False, "memory_bytes": 3 * 10**9}
GPU = {
    **BOTH,
    **{
        "lowest_sm_clock_mhz": 1965,
        "baseline_sm_clock_mhz": 1830,
        "clocks_locked": False,
        "memory_bytes": 3_120_000_000,
    },
}


def state(**changes: Any) -> dict[str, Any]:
    return {**STATE, **changes}
