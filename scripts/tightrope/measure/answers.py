"""Predict examples with an engine: checked logits, classes, margins."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from tightrope.engines.load import Run
from tightrope.errors import WorkFailed
from tightrope.inputs.arrays import Arrays, batches_by_length
from tightrope.jobs.progress import Tell, untold
from tightrope.records.accuracy import Logits

BATCH = 32


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
    return classes_and_margins(logits)


def classes_and_margins(logits: Any) -> list[tuple[int, float]]:
    """Return the class and the margin of each row of checked logits."""
    top = np.sort(logits, axis=1)[:, -2:]
    return [
        (int(row.argmax()), float(first - second))
        for row, (second, first) in zip(logits, top, strict=True)
    ]


def answer_chunk(
    run: Run, rows: Sequence[Arrays], size: int, classes: int, tell: Tell = untold
) -> Logits:
    """Return the checked logits of each row, in their order; batches hold rows of similar length.

    `tell` gets the number of rows of each batch that is answered.
    """
    found = np.empty((len(rows), classes), np.float32)
    for indices, batch in batches_by_length(rows, size):
        logits = run(batch)
        check_logits(logits, batch, classes=classes)
        found[indices] = logits
        tell(len(indices))
    return found


def largest_batch(options: dict[str, Any]) -> int:
    """Return the rows per batch: BATCH, or fewer where an engine was built for fewer."""
    if profiles := options.get("profiles"):
        longest = max(most[1:] for _, _, most in profiles)
        return min(BATCH, max(most[0] for _, _, most in profiles if most[1:] == longest))
    buckets = options.get("buckets")
    return min(BATCH, max(buckets["batch"])) if buckets else BATCH
