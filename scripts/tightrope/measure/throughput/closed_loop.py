"""Calls one after the other, in a window that is the same for several processes."""

import gc
import time
from collections.abc import Callable
from typing import Any


def closed_loop(
    run: Callable[[Any], Any], inputs: Any, *, start: float, seconds: float, blocks: int
) -> list[list[float]]:
    """Return the seconds per call of the calls that ended in each of the `blocks` of a window.

    The window begins at `start` of `time.perf_counter`, which all processes of a Linux machine
    share, and has `seconds`. Calls run before it begins and until it has ended. Those that end
    outside it, and the first that ends in it, do not count. The time of a call is that since the
    end of the call before. The garbage collector is off meanwhile.
    """
    clock = time.perf_counter
    found: list[list[float]] = [[] for _ in range(blocks)]
    length, stop = seconds / blocks, start + seconds
    enabled = gc.isenabled()
    gc.disable()
    try:
        end = clock()
        while end < start:
            run(inputs)
            end = clock()
        while end < stop:
            before = end
            run(inputs)
            end = clock()
            place = int((end - start) / length)
            if place < blocks:
                found[place].append(end - before)
    finally:
        if enabled:
            gc.enable()
    return found
