"""Two engines served as one, and an engine alone, on encoded examples."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from tightrope.engines.load import Run
from tightrope.inputs.arrays import Arrays, stack
from tightrope.measure.cascade.threshold import confidences

# the same example, encoded for each of the models that may answer it
Example = Sequence[Arrays]


class Reply(NamedTuple):
    """Logits float32 [batch, classes], and the rows that the large model answered, bool [batch]."""

    logits: np.ndarray
    escalated: np.ndarray


class Alone:
    """One engine as a callable from a batch of examples, encoded for it at `place`, to a Reply."""

    def __init__(self, run: Run, place: int, *, escalated: bool) -> None:
        self.run = run
        self.place = place
        self.escalated = escalated

    def __call__(self, examples: Sequence[Example]) -> Reply:
        """Return the answers to a batch, padded to its longest example."""
        logits = self.run(stack([one[self.place] for one in examples]))
        return Reply(np.asarray(logits), np.full(len(examples), self.escalated))


class Cascade:
    """A small and a large engine as one callable from a batch of examples to a Reply.

    The small one answers where its confidence is at least `threshold`, see `confidences`. The rest
    of the batch is gathered into one smaller batch for the large one, padded to the longest example
    of that rest.
    """

    def __init__(self, small: Run, large: Run, threshold: float) -> None:
        self.small = Alone(small, 0, escalated=False)
        self.large = Alone(large, 1, escalated=True)
        self.threshold = threshold

    def __call__(self, examples: Sequence[Example]) -> Reply:
        """Return the answers to a batch."""
        logits, escalated = self.small(examples)
        escalated = confidences(logits) < self.threshold
        rest = np.flatnonzero(escalated).tolist()
        if rest:
            logits = np.array(logits)  # the outputs of an engine may be its own memory
            logits[rest] = self.large([examples[index] for index in rest]).logits
        return Reply(logits, escalated)


def batches_of(examples: Sequence[Any], size: int) -> list[Sequence[Any]]:
    """Return the examples in batches of `size` in their order; the last one may be smaller."""
    return [examples[start : start + size] for start in range(0, len(examples), size)]
