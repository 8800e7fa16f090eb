"""A training that is killed in its middle."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from tightrope.training.step import Trainer


class Killed(BaseException):
    """Comes in the middle of a training."""


@contextmanager
def killed_at(step: int) -> Iterator[None]:
    """Kill the training that is run in it at that of its steps, counted from 1."""
    learn, left = Trainer.learn, iter(range(1, step))

    def learn_or_end(self: Trainer, batches: Any) -> Any:
        if next(left, None) is None:
            raise Killed
        return learn(self, batches)

    with pytest.MonkeyPatch.context() as patch, pytest.raises(Killed):
        patch.setattr(Trainer, "learn", learn_or_end)
        yield
