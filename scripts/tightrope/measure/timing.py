"""Timed calls on one monotonic clock; what is called returns when its result is there."""

import gc
import time
from collections.abc import Callable
from typing import Any


def timed_calls(
    run: Callable[[Any], Any], inputs: Any, *, seconds: float, calls: int, limit_seconds: float
) -> list[float]:
    """Seconds of each call: at least `calls` and for at least `seconds`.

    `limit_seconds` beats both, after the first call. The garbage collector is off meanwhile.
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
