"""Progress of a long step: a bar in the job's log, from which the terminal reads it."""

from collections.abc import Callable
from typing import Any, Self

from tqdm import tqdm

# a function that takes the number of rows, or the share, that is newly done
Tell = Callable[[float], object]

INTERVAL_SECONDS = 2.0
FORMAT = "{desc}: {percentage:3.0f}%|{bar:10}| {n:.1f}/{total:.0f} [{elapsed}<{remaining}]"
# the terminal takes a full bar for the end of the step
FULLEST = 0.99
# the thread of tqdm would run beside measurements
tqdm.monitor_interval = 0


class ProgressBar:
    """Bar of the step `what` that is full at `total`; a context manager that fills it at its end.

    An earlier run of the step has `done` a part of it, which does not count for the speed.

    It is written every INTERVAL_SECONDS at most, with the time left by the mean speed so far.
    """

    def __init__(self, what: str, total: float, done: float = 0.0) -> None:
        # tqdm knows no percent of nothing
        self.total = max(total, 1e-9)
        self.bar = tqdm(
            total=self.total,
            initial=done,
            desc=what,
            mininterval=INTERVAL_SECONDS,
            miniters=0,
            smoothing=0.0,
            bar_format=FORMAT,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: Any) -> None:
        if kind is None:
            self.bar.n = self.total
        self.bar.close()

    def add(self, count: float = 1) -> None:
        """Count `count` more as done."""
        self.reach(self.bar.n + count)

    def reach(self, done: float) -> None:
        """Set what is done to `done`; it never goes back."""
        self.bar.update(max(0.0, min(done, FULLEST * self.total) - self.bar.n))

    def after(self, done: float) -> Tell:
        """Return a function that sets what is done to `done` plus what it is told."""
        return lambda more: self.reach(done + more)


def untold(count: float) -> None:
    """Ignore the progress: for a caller that shows none."""
