"""What a training tells while it runs."""

import time
from typing import TextIO

import numpy as np

from tightrope.durations import in_words

LINES = 10


class Report:
    """A line on the terminal for each tenth of the training, with the time that is left."""

    def __init__(self, steps: int, terminal: TextIO, *, done: int = 0) -> None:
        """Start the clock of `steps` steps, of which `done` were done by a run before this one."""
        self.steps, self.terminal, self.before = steps, terminal, done
        self.start = time.perf_counter()
        self.marks = {max(1, round(steps * part / LINES)) for part in range(1, LINES + 1)}
        if done:
            self.say(f"goes on after step {done:,} of {steps:,}")

    def __call__(self, losses: list[float]) -> None:
        """Tell of the step just done, where a tenth ends with it."""
        done = len(losses)
        if done not in self.marks:
            return
        a_step = (time.perf_counter() - self.start) / (done - self.before)
        loss = float(np.mean(losses[-max(1, self.steps // LINES) :]))
        left = in_words(a_step * (self.steps - done))
        self.say(f"step {done:,} of {self.steps:,}, loss {loss:.2f}, about {left} left")

    def say(self, words: str) -> None:
        """Print one line."""
        print(f"fine-tuning: {words}", file=self.terminal, flush=True)


def averaged(losses: list[float]) -> list[float]:
    """Mean losses of ten equal parts of the training."""
    return [round(float(np.mean(part)), 6) for part in np.array_split(losses, LINES) if len(part)]
