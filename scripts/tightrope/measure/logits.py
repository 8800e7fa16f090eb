"""Check the logits of an engine, and derive classes and margins from them."""

from typing import Any

import numpy as np

from tightrope.errors import WorkFailed
from tightrope.inputs.arrays import Arrays


def check_logits(logits: Any, inputs: Arrays, *, classes: int) -> None:
    """Raise WorkFailed unless `logits` are finite numbers [batch of the inputs, classes]."""
    batch, shape = len(next(iter(inputs.values()))), np.shape(logits)
    if shape != (batch, classes):
        reason = f"gives outputs of shape {list(shape)} in the place of {[batch, classes]}"
        raise WorkFailed(reason, transient=False)
    if not np.isfinite(logits).all():
        raise WorkFailed("gives logits that are not numbers", transient=False)


def answers(logits: Any, inputs: Arrays, *, classes: int) -> list[tuple[int, float]]:
    """Return the class and the margin (highest logit minus the second) per row of the batch.

    Raises WorkFailed as `check_logits` does.
    """
    check_logits(logits, inputs, classes=classes)
    top = np.sort(logits, axis=1)[:, -2:]
    return [
        (int(row.argmax()), float(first - second))
        for row, (second, first) in zip(logits, top, strict=True)
    ]
