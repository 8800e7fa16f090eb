"""What a teacher says of a student's training examples, as its job has written it."""

import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from tightrope.artifacts.manifest import read_manifest
from tightrope.artifacts.manifest_types import TeacherManifest
from tightrope.errors import TightropeError
from tightrope.inputs.arrays import Arrays
from tightrope.inputs.encode import Example
from tightrope.training.objective import (
    LOGITS,
    STATES,
    TOKENS,
    UNLABELLED,
    DistillationLoss,
    DistillationWeights,
)

LOGITS_FILE, STATES_FILE, TOKENS_FILE = "logits.npy", "states.npy", "tokens.npy"
TEXTS_FILE = "unlabelled.jsonl"


@dataclass(frozen=True)
class Teaching:
    """Outputs of a teacher for rows of examples, in their order.

    `logits` are float32 [rows, classes], `states` float16 [all tokens, hidden] of the last layer,
    None if they are not asked for, `tokens` int64 [rows] the number of each row, `starts` int64
    [rows] its first one in `states`.
    """

    folder: Path
    manifest: TeacherManifest
    weights: DistillationWeights
    logits: np.ndarray
    states: np.ndarray | None
    tokens: np.ndarray
    starts: np.ndarray

    def part(self, indices: Sequence[int]) -> "Teaching":
        """Return a copy restricted to these rows."""
        kept = list(indices)
        rows = {name: getattr(self, name)[kept] for name in ("logits", "tokens", "starts")}
        return replace(self, **rows)

    def batch(self, indices: Sequence[int]) -> Arrays:
        """Return the targets of these rows, see `DistillationLoss.forward`."""
        kept = list(indices)
        targets = {LOGITS: self.logits[kept]}
        if self.states is None:
            return targets
        counts = self.tokens[kept]
        real = np.arange(counts.max()) < counts[:, None]
        states = np.zeros((*real.shape, self.states.shape[1]), self.states.dtype)
        for place, start, count in zip(states, self.starts[kept], counts, strict=True):
            place[:count] = self.states[start : start + count]
        return {**targets, STATES: states, TOKENS: real}

    def objective(self, model: Any) -> DistillationLoss:
        """Return the loss of a student."""
        if self.states is None:
            return DistillationLoss(self.weights, None)
        return DistillationLoss(self.weights, (hidden_size(model), self.states.shape[1]))

    def unlabelled(self) -> list[Example]:
        """Return the texts without a label that follow the labelled examples."""
        if not self.manifest["unlabelled"]:
            return []
        lines = (self.folder / TEXTS_FILE).read_text().splitlines()
        return [{"text": json.loads(line)["text"], "label": UNLABELLED} for line in lines]

    def check(self, name: str, labels: list[str] | None, rows: Sequence[Arrays]) -> None:
        """Raise TightropeError where a student cannot learn these rows from the teacher.

        `name` is the student's source, `labels` are those of its data.
        """
        manifest = self.manifest
        teacher, theirs = manifest["teacher"], manifest["labels"]
        if theirs != labels:
            raise TightropeError(
                f"distill.from = {teacher}: it has the labels {', '.join(theirs[:5])}, the data of "
                f"the student has {', '.join((labels or ['none'])[:5])}; take a teacher of the "
                "same labels in the same order"
            )
        if len(rows) != manifest["rows"]:
            raise TightropeError(
                f"distill.from = {teacher}: it saw {manifest['rows']} examples, the student has "
                f"{len(rows)}; delete {self.folder} and run again"
            )
        if self.states is not None and manifest["inputs_sha256"] not in (None, digest_of(rows)):
            raise TightropeError(
                f"distill.hidden: {name} has other tokens than its teacher {teacher}, so the "
                "states of tokens cannot be compared; set distill.hidden to 0"
            )


def read_teaching(manifest: Path | str, distill: dict[str, Any]) -> Teaching:
    """Return the outputs beside their verified `manifest`, weighted by the section `distill`."""
    folder, document = Path(manifest).parent, read_manifest(manifest, TeacherManifest)
    weights = DistillationWeights(**{name: distill[name] for name in DistillationWeights._fields})
    tokens = np.load(folder / TOKENS_FILE, allow_pickle=False)
    # the states may be larger than the memory
    states = None
    if document["hidden"] is not None and weights.hidden:
        states = np.load(folder / STATES_FILE, mmap_mode="r", allow_pickle=False)
    return Teaching(
        folder=folder,
        manifest=document,
        weights=weights,
        logits=np.load(folder / LOGITS_FILE, allow_pickle=False),
        states=states,
        tokens=tokens,
        starts=np.cumsum(tokens) - tokens,
    )


def digest_of(rows: Iterable[Arrays]) -> str:
    """Return the sha256 of the token ids of all rows."""
    found = hashlib.sha256()
    for row in rows:
        found.update(len(row["input_ids"]).to_bytes(8, "little"))
        found.update(row["input_ids"].astype("<i8").tobytes())
    return found.hexdigest()


def hidden_size(model: Any) -> int:
    """Return the size of a token's state in the last layer of a classifier."""
    sizes = getattr(model.config, "hidden_sizes", None)
    return int(sizes[-1] if sizes else model.config.hidden_size)
