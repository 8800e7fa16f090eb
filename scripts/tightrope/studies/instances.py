"""Several instances of an engine at the same time, each on cores of its own."""

import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Literal, NamedTuple

from tightrope.jobs.child import GRACE_SECONDS, Child, cpu_seconds
from tightrope.machine.interference import Windows

BLOCKS = 10
# calls of each instance in a block, also where they take longer than `seconds` allows
CALLS_PER_BLOCK = 2
# until the window begins: the instances have got the request by then and are at work
LEAD_SECONDS = 0.2
WARM_UP_SECONDS = 0.5
# of the warm-up, whose medians it compares
WARM_UP_WINDOW = 0.05


class Division(NamedTuple):
    """So many instances of an engine, each with so many threads on cores of its own."""

    instances: int
    threads: int


def divisions(
    instances: Sequence[int] | Literal["auto"],
    threads: Sequence[int] | Literal["auto"],
    *,
    cores: int,
) -> list[Division]:
    """Return the divisions of `cores`, those with fewer instances first.

    The first is one instance with all threads, with which the others are compared. `auto` instances
    are the divisors of `cores`, `auto` threads share all cores. A division that needs more cores
    than there are is among them; it is skipped.
    """
    every = [one for one in range(1, cores + 1) if cores % one == 0]
    found = {Division(1, cores)}
    for count in every if instances == "auto" else instances:
        own = [max(1, cores // count)] if threads == "auto" else threads
        found |= {Division(count, one) for one in own}
    return sorted(found, key=lambda one: (one.instances, -one.threads))


def shares(division: Division, processors: Sequence[int]) -> list[list[int]]:
    """Return the processors of each instance; no two instances share one."""
    width = division.threads
    return [list(processors[start * width :][:width]) for start in range(division.instances)]


def ask_all(workers: Sequence[Child], *arguments: Any, **limit: float) -> list[Any]:
    """Return the answers of all workers, which work on the request at the same time.

    Waits for all of them; raises as `Child.ask` does, for the first that fails.
    """
    with ThreadPoolExecutor(len(workers)) as pool:
        return list(pool.map(lambda worker: worker.ask(*arguments, **limit), workers))


def warm_up(workers: Sequence[Child], index: int) -> float:
    """Make the first calls and warm up, all at the same time; return the seconds of a call.

    That of the slowest instance, with all of them running. Raises as `Child.ask` does, also where
    the outputs of an engine cannot be right.
    """
    ask_all(workers, "first_call", index)
    ask_all(workers, "warm_up", index, None, WARM_UP_SECONDS, WARM_UP_WINDOW)
    return float(max(ask_all(workers, "pace", index)))


def window_seconds(pace_s: float, instances: int, *, seconds: float, calls: int) -> float:
    """Return how long to measure calls of `pace_s` seconds each: `seconds`, or longer.

    Longer where each block would have fewer than `CALLS_PER_BLOCK`, or all instances together
    fewer than `calls`.
    """
    return max(seconds, BLOCKS * CALLS_PER_BLOCK * pace_s, calls * pace_s / instances)


def loop_all(
    workers: list[Child], index: int, processors: list[int], seconds: float
) -> dict[str, Any]:
    """Return the fields of a Point from `seconds` on.

    All instances call in a closed loop from before the window of `seconds` begins until it has
    ended. Raises as `Child.ask` does.
    """
    windows = Windows(processors, lambda: cpu_seconds(workers))
    start = time.perf_counter() + LEAD_SECONDS
    limit = LEAD_SECONDS + 2 * seconds + GRACE_SECONDS
    loops = ask_all(workers, "loop", index, start, seconds, BLOCKS, seconds=limit)
    foreign = windows.close()
    return {
        "seconds": seconds,
        "blocks_s": [
            [[round(call, 7) for call in block] for block in one["blocks_s"]] for one in loops
        ],
        "waited_s": [one["waited_s"] for one in loops],
        "late_s": [one["late_s"] for one in loops],
        "foreign_cores": foreign,
        "peak_rss_bytes": sum(ask_all(workers, "peak_rss_bytes")),
    }
