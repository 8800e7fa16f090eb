"""A fixed piece of work, timed before and after each measurement: did the machine change speed?"""

import hashlib
import os
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from tightrope.jobs.child import Limits, supervised
from tightrope.machine.cores import frequency

ROUNDS = 20
# about 5 ms a round where the CPU has instructions for SHA-256
WORK = bytes(8 << 20)
LIMITS = Limits(memory_bytes=8e9, seconds=120)


def reference_workload(processors: list[int]) -> dict[str, Any]:
    """The state of these processors now, in a child of its own.

    `rounds_s`: seconds of each of 20 rounds in which each of the processors hashes the same
    8 MiB (SHA-256), all at once. `load_average`: that of the last minute, this program's own
    work included. `frequency_khz`: of each processor, None where the kernel does not say.
    """
    rounds = supervised(timed_rounds, processors, limits=LIMITS)
    return {
        "rounds_s": rounds,
        "load_average": os.getloadavg()[0],
        "frequency_khz": [frequency(number) for number in processors],
    }


def timed_rounds(processors: list[int]) -> list[float]:
    """Run in the child: seconds of each round."""
    os.sched_setaffinity(0, processors)
    samples = []
    with ThreadPoolExecutor(len(processors)) as pool:
        for _ in range(ROUNDS + 1):
            began = time.perf_counter()
            list(pool.map(lambda _: hashlib.sha256(WORK).digest(), processors))
            samples.append(time.perf_counter() - began)
    return samples[1:]
