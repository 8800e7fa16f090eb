"""The loss of a training step: of the labels, or the distance from what a teacher says."""

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch.nn.functional import cross_entropy, kl_div, log_softmax

from tightrope.artifacts.manifest import read_manifest
from tightrope.artifacts.manifest_types import TeacherManifest
from tightrope.errors import TightropeError
from tightrope.inputs.arrays import Arrays
from tightrope.inputs.encode import Example

# targets of a batch: `labels`, and with a teacher `teacher_logits` and `teacher_states`
LABELS, LOGITS, STATES, TOKENS = "labels", "teacher_logits", "teacher_states", "teacher_tokens"
# the label of an example without one, see torch.nn.functional.cross_entropy
UNLABELLED = -100
LOGITS_FILE, STATES_FILE, TOKENS_FILE = "logits.npy", "states.npy", "tokens.npy"
TEXTS_FILE = "unlabelled.jsonl"
Targets = Mapping[str, torch.Tensor]


class DistillationWeights(NamedTuple):
    """How the parts of the loss are weighted, see `DistillationLoss`."""

    temperature: float
    labels: float
    hidden: float


class LabelLoss(torch.nn.Module):
    """Mean cross-entropy of the labels. `arguments` are those of the classifier's call."""

    arguments: Mapping[str, Any] = {}

    def forward(self, outputs: Any, targets: Targets) -> torch.Tensor:
        """Return the loss, float32 []; `labels` are int64 [batch]."""
        return cross_entropy(outputs.logits.float(), targets[LABELS])


class DistillationLoss(torch.nn.Module):
    """Distance of a student from its teacher, in logits and in the states of the last layer.

    The mean over the batch of `labels` x cross-entropy + (1 - `labels`) x `temperature`^2 x
    KL(teacher || student) of the logits over `temperature` (Hinton et al. 2015, "Distilling the
    Knowledge in a Neural Network", section 2) + `hidden` x ||student - teacher||^2 / ||teacher||^2
    of each token's state, as in ZipLM (Kurtic et al. 2023, arXiv 2302.04089, section 3.3). An
    example without a label has no cross-entropy. A student of another hidden size is projected by
    weights that are trained with it and thrown away (Jiao et al. 2020, "TinyBERT", equation 8).
    """

    def __init__(self, weights: DistillationWeights, sizes: tuple[int, int] | None) -> None:
        """`sizes` are the hidden sizes of student and teacher, None without states."""
        super().__init__()
        self.weights = weights
        self.arguments = {} if sizes is None else {"output_hidden_states": True}
        self.project: torch.nn.Module = torch.nn.Identity()
        if sizes is not None and sizes[0] != sizes[1]:
            self.project = torch.nn.Linear(*sizes, bias=False)

    def forward(self, outputs: Any, targets: Targets) -> torch.Tensor:
        """Return the loss, float32 [].

        `labels` are int64 [batch], `teacher_logits` float32 [batch, classes], `teacher_states`
        float16 [batch, tokens, hidden], of which `teacher_tokens`, bool [batch, tokens], are no
        padding.
        """
        logits, labels = outputs.logits.float(), targets[LABELS]
        hard = cross_entropy(logits, labels, ignore_index=UNLABELLED, reduction="sum")
        temperature, share = self.weights.temperature, self.weights.labels
        ours, theirs = (log_softmax(one / temperature, -1) for one in (logits, targets[LOGITS]))
        soft = temperature**2 * kl_div(ours, theirs, log_target=True, reduction="batchmean")
        loss = share * hard / len(labels) + (1 - share) * soft
        if STATES in targets:
            loss = loss + self.weights.hidden * self.distance(outputs, targets)
        return loss

    def distance(self, outputs: Any, targets: Targets) -> torch.Tensor:
        """Return the mean over examples of the mean over tokens of the states' distance."""
        ours = self.project(tokens_of(outputs.hidden_states[-1]).float())
        theirs, real = targets[STATES].float(), targets[TOKENS]
        # padding is zero in `theirs`
        size = theirs.square().sum(-1).clamp_min(torch.finfo(torch.float32).tiny)
        distances = (ours - theirs).square().sum(-1) / size
        return (torch.where(real, distances, 0).sum(-1) / real.sum(-1)).mean()


def tokens_of(states: torch.Tensor) -> torch.Tensor:
    """Return states as [batch, tokens, hidden]: the places of [batch, hidden, height, width]."""
    return states.flatten(2).transpose(1, 2) if states.ndim == 4 else states


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
        sizes = None if self.states is None else (hidden_size(model), self.states.shape[1])
        return DistillationLoss(self.weights, sizes)

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
