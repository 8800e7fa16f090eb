"""Time calls with one monotonic clock; each call returns when its result is complete."""

import gc
import time
from collections.abc import Callable
from typing import Any


def timed_calls(
    run: Callable[[Any], Any], inputs: Any, *, seconds: float, calls: int, limit_seconds: float
) -> list[float]:
    """Return the seconds per call of at least `calls` calls over at least `seconds`.

    After the first call, `limit_seconds` overrides both. The garbage collector is off meanwhile.
    """
    clock = time.perf_counter
    samples: list[float] = []
    enabled = gc.isenabled()
    gc.disable()
    try:
        start = end = clock()
        while (end - start < seconds or len(samples) < calls) and (
            end - start < limit_seconds or not samples
        ):
            begin = clock()
            run(inputs)
            end = clock()
            samples.append(end - begin)
    finally:
        if enabled:
            gc.enable()
    return samples
