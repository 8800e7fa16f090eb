"""Search for the highest query rate that passes a test, by bisection."""

import math
from collections.abc import Callable

RUNS = 9
BRACKET = 1.05
STEP_UP = 1.5


def highest_rate(
    passes: Callable[[float], bool], start: float, *, least: float = 0.0
) -> float | None:
    """Return the highest tried rate that passed, None if none passed.

    From `start`, the rate is multiplied by 1.5 while rates pass, or halved while they fail, but not
    below `least`. Then it is the geometric mean of the highest rate that passed and the lowest that
    failed, until they are within 5 %. At most 9 rates, each rounded to three significant digits.
    """
    low: float | None = None
    high: float | None = None
    rate = start
    for _ in range(RUNS):
        rate = float(f"{rate:.3g}")
        if passes(rate):
            low = rate
        else:
            high = rate
        if low is None:
            rate /= 2
        elif high is None:
            rate *= STEP_UP
        else:
            rate = math.sqrt(low * high)
        if rate < least or (low and high and high <= low * BRACKET):
            break
    return low
