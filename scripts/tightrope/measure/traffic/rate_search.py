"""Search for the highest query rate that passes a test, by bisection."""

import math

RUNS = 9
BRACKET = 1.05
STEP_UP = 1.5


class RateSearch:
    """Search step by step, so that the searches of several servers can alternate.

    `rate` is the next rate to try, None at the end; `low` is the highest rate that passed, None if
    none did. From `start`, the rate is multiplied by 1.5 while rates pass, or halved while they
    fail, but not below `least`. Then it is the geometric mean of the highest rate that passed and
    the lowest that failed, until they are within 5 %. At most 9 rates, each rounded to three
    significant digits.
    """

    def __init__(self, start: float, *, least: float = 0.0) -> None:
        self.least = least
        self.tried = 0
        self.low: float | None = None
        self.high: float | None = None
        self.rate: float | None = rounded(start)

    def record(self, passed: bool) -> None:
        """Record whether `rate` passed, and choose the next one."""
        if self.rate is None:
            return
        self.tried += 1
        if passed:
            self.low = self.rate
        else:
            self.high = self.rate
        if self.low is None:
            following = self.rate / 2
        elif self.high is None:
            following = self.rate * STEP_UP
        else:
            following = math.sqrt(self.low * self.high)
        narrow = self.low and self.high and self.high <= self.low * BRACKET
        ended = following < self.least or narrow or self.tried == RUNS
        self.rate = None if ended else rounded(following)


def rounded(rate: float) -> float:
    """Return the rate with three significant digits."""
    return float(f"{rate:.3g}")
