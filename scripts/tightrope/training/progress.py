"""Progress lines of a training run."""

import time
from typing import TextIO

import numpy as np

from tightrope.durations import in_words

LINES = 10


class Report:
    """Print a line for each tenth of the training, with the estimated time left."""

    def __init__(self, steps: int, terminal: TextIO, *, done: int = 0) -> None:
        """Start the clock for `steps` steps; an earlier run has finished `done` of them."""
        self.steps, self.terminal, self.before = steps, terminal, done
        self.start = time.perf_counter()
        self.marks = {max(1, round(steps * part / LINES)) for part in range(1, LINES + 1)}
        if done:
            self.say(f"goes on after step {done:,} of {steps:,}")

    def __call__(self, losses: list[float]) -> None:
        """Report the last step if it completes a tenth."""
        done = len(losses)
        if done not in self.marks:
            return
        step_s = (time.perf_counter() - self.start) / (done - self.before)
        loss = float(np.mean(losses[-max(1, self.steps // LINES) :]))
        left = in_words(step_s * (self.steps - done))
        self.say(f"step {done:,} of {self.steps:,}, loss {loss:.2f}, about {left} left")

    def say(self, line: str) -> None:
        """Print one line."""
        print(f"fine-tuning: {line}", file=self.terminal, flush=True)


def average_tenths(losses: list[float]) -> list[float]:
    """Return the mean loss of each tenth of the training."""
    return [round(float(np.mean(part)), 6) for part in np.array_split(losses, LINES) if len(part)]
