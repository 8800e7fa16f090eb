"""Time a fixed workload before and after a measurement, to detect changes of machine speed."""

import hashlib
import os
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from tightrope.jobs.child import Limits, supervised
from tightrope.machine.cores import frequency

ROUNDS = 20
# about 5 ms per round on a CPU with SHA-256 instructions
WORK = bytes(8 << 20)
LIMITS = Limits(memory_bytes=8e9, seconds=120)


def reference_workload(processors: list[int]) -> dict[str, Any]:
    """Return the current speed of these processors, measured in a child process.

    `rounds_s`: seconds of each of 20 rounds in which all processors hash the same 8 MiB (SHA-256)
    in parallel. `load_average`: that of the last minute, including this program.
    `frequency_khz`: of each processor, None where the kernel does not report it.
    """
    rounds = supervised(timed_rounds, processors, limits=LIMITS)
    return {
        "rounds_s": rounds,
        "load_average": os.getloadavg()[0],
        "frequency_khz": [frequency(number) for number in processors],
    }


def timed_rounds(processors: list[int]) -> list[float]:
    """Return, in the child, the seconds of each round after a warm-up round."""
    os.sched_setaffinity(0, processors)
    samples = []
    with ThreadPoolExecutor(len(processors)) as pool:
        for _ in range(ROUNDS + 1):
            began = time.perf_counter()
            list(pool.map(lambda _: hashlib.sha256(WORK).digest(), processors))
            samples.append(time.perf_counter() - began)
    return samples[1:]
