"""Record of accuracy: every prediction on the evaluation split, its logits in a file beside it."""

import hashlib
import io
from dataclasses import dataclass, field
from functools import cached_property
from itertools import starmap
from operator import eq
from pathlib import Path
from typing import Any

import numpy as np

from tightrope.artifacts.files import read_bytes, write_bytes
from tightrope.errors import ArtifactError
from tightrope.records.record import Record

Logits = np.ndarray[Any, np.dtype[np.float32]]
# the ends of the names of a record and of its logits
RECORD, LOGITS = "accuracy.json", "logits.npy"


@dataclass(kw_only=True)
class AccuracyRecord(Record):
    """Every prediction on the evaluation split, in its order; for a slow engine the first ones.

    `margins` are the highest logit minus the second highest. Without labels in the data, `labels`
    is None and nothing is predicted. `data_sha256` is that of the manifest of the split,
    `logits_sha256` that of the file of the logits. `truncation` has the number of its `texts`,
    and how many of them were `truncated` at `max_sequence` tokens; None for images, and where
    nothing was predicted.

    `right` is computed once: predictions and labels do not change.

    The attribute `logits`, float32 [examples, classes], is no field: it is written and read with
    the record, as `.logits.npy` in the place of `.accuracy.json`.
    """

    data_sha256: str | None = None
    truncation: dict[str, int] | None = None
    labels: list[int] | None = None
    predictions: list[int] = field(default_factory=list)
    margins: list[float] = field(default_factory=list)
    logits_sha256: str | None = None

    def __post_init__(self) -> None:
        """Begin without logits."""
        self.logits: Logits = np.zeros((0, 0), np.float32)

    @cached_property
    def right(self) -> list[bool]:
        """For each prediction whether it equals the label."""
        return [*starmap(eq, zip(self.predictions, self.labels or (), strict=True))]

    def write(self, path: Path | str) -> None:
        """Write the logits, then the record, which has their digest."""
        content = io.BytesIO()
        np.save(content, np.asarray(self.logits, "<f4"), allow_pickle=False)
        self.logits_sha256 = hashlib.sha256(content.getvalue()).hexdigest()
        write_bytes(logits_file(path), content.getvalue())
        super().write(path)

    def read_beside(self, path: Path | str) -> None:
        """Read the logits; raise ArtifactError unless they are those of this record."""
        file = logits_file(path)
        content = read_bytes(file)
        if hashlib.sha256(content).hexdigest() != self.logits_sha256:
            raise ArtifactError(f"{file}: not the logits of {path}; delete both and run again")
        logits = np.load(io.BytesIO(content), allow_pickle=False)
        if logits.dtype != np.float32 or logits.shape[:-1] != (len(self.predictions),):
            raise ArtifactError(f"{file}: no row of logits per prediction; delete it and run again")
        self.logits = logits


def record_with(path: Path) -> Path | None:
    """Return the accuracy record that a file is or is beside as its logits; None for others."""
    for end in (RECORD, LOGITS):
        if path.name.endswith(f".{end}"):
            return path.with_name(f"{path.name.removesuffix(end)}{RECORD}")
    return None


def logits_file(path: Path | str) -> Path:
    """Return where the logits of an accuracy record are."""
    path = Path(path)
    return path.with_name(f"{path.name.removesuffix(RECORD)}{LOGITS}")
