"""The mean time of a call, after a warm-up."""

import statistics
from collections.abc import Callable
from typing import Any

from tightrope.measure.timing import timed_calls

# seconds of the timed calls, and before them
PLAIN_S, WARM_UP_S = 0.3, 0.1
FEWEST = 3


def mean_call(run: Callable[[Any], Any], inputs: Any, *, seconds: float = PLAIN_S) -> float:
    """Return the mean seconds of a call, over about `seconds` after a warm-up."""
    warm_up = min(WARM_UP_S, seconds)
    timed_calls(run, inputs, seconds=warm_up, calls=1, limit_seconds=warm_up)
    return statistics.fmean(
        timed_calls(run, inputs, seconds=seconds, calls=FEWEST, limit_seconds=10 * seconds)
    )
