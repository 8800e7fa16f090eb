"""A teacher: its outputs for the examples of a student, and the student's distance from them."""

import hashlib
import json
import shutil
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.lib.format import open_memmap
from torch.nn.functional import cross_entropy, kl_div, log_softmax

from tightrope.artifacts.files import digest, sha256, storage_errors
from tightrope.artifacts.manifest import clear_folder, read_manifest, write_manifest
from tightrope.artifacts.manifest_types import CheckpointManifest, TeacherManifest
from tightrope.data.source import load_kind, parse_source
from tightrope.data.splits import fingerprint
from tightrope.errors import TightropeError
from tightrope.inputs.arrays import Arrays, batches_by_length, stack
from tightrope.inputs.encode import Example, load_encoder, read_split
from tightrope.jobs.progress import ProgressBar
from tightrope.model.module import load_module
from tightrope.signature import IMAGE, TEXT
from tightrope.training.step import LABELS, Targets, prepare_device

# targets of a batch besides its labels
LOGITS, STATES, TOKENS = "teacher_logits", "teacher_states", "teacher_tokens"
# the label of an example without one, see torch.nn.functional.cross_entropy
UNLABELLED = -100
LOGITS_FILE, STATES_FILE, TOKENS_FILE = "logits.npy", "states.npy", "tokens.npy"
TEXTS_FILE = "unlabelled.jsonl"
BATCH = 32


class DistillationWeights(NamedTuple):
    """How the parts of the loss are weighted, see `DistillationLoss`."""

    temperature: float
    labels: float
    hidden: float


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


@dataclass(frozen=True, kw_only=True)
class TeacherSettings:
    """What a teacher is asked for.

    `hidden` keeps the states of tokens, `unlabelled` is the source of more texts, in `column` of a
    table, and `sequence` where texts are cut, None for images.
    """

    teacher: str
    sequence: int | None
    hidden: bool
    threads: int
    unlabelled: str | None = None
    column: str = "text"
    seed: int = 0
    device: str = "cpu"


def write_teacher_outputs(
    manifest: Path | str,
    settings: TeacherSettings,
    *,
    teacher: Path | str,
    data: Path | str,
    splits: Sequence[Path | str] = (),
) -> None:
    """Write the outputs of the checkpoint `teacher` for the split `data`, the `manifest` last.

    Unlabelled texts that occur in `data` or in one of `splits` are left out. See TeacherManifest
    for the files. Raises TightropeError where no unlabelled text is left.
    """
    prepare_device(settings.device, settings.threads)
    checkpoint = read_manifest(teacher, CheckpointManifest)
    examples, texts = read_split(data), unlabelled_texts(settings, data, splits)
    if texts:
        examples = [*examples, *texts]
    rows = load_encoder(teacher, max_sequence=settings.sequence or 0)(examples)
    model = load_module(Path(teacher).parent, torch.float32).to(settings.device)
    folder = clear_folder(manifest)
    with storage_errors(folder):
        write_outputs(folder, model, rows, states=settings.hidden)
        if texts:
            lines = [json.dumps(text, sort_keys=True) + "\n" for text in texts]
            (folder / TEXTS_FILE).write_text("".join(lines), encoding="ascii")
        for file in sorted(Path(teacher).parent.glob("*token*.json")):
            shutil.copyfile(file, folder / file.name)
    write_manifest(
        manifest,
        teacher=settings.teacher,
        teacher_sha256=digest(checkpoint["files"]),
        data_sha256=sha256(data),
        labels=checkpoint["labels"],
        rows=len(rows),
        unlabelled=len(texts),
        sequence=settings.sequence,
        hidden=hidden_size(model) if settings.hidden else None,
        vocabulary=checkpoint.get("vocabulary"),
        inputs_sha256=None if checkpoint["task"] == IMAGE else digest_of(rows),
    )


def unlabelled_texts(
    settings: TeacherSettings, data: Path | str, splits: Sequence[Path | str]
) -> list[Example]:
    """Return the distinct texts of `settings.unlabelled` as examples, in its order; none without.

    Those of the data are left out: a text of the evaluation split would let the student learn what
    its teacher answers there.
    """
    source = settings.unlabelled
    if source is None:
        return []
    kind, location = parse_source(source)
    texts = load_kind(kind, task=TEXT).read_unlabelled(
        source, location, column=settings.column, seed=settings.seed
    )
    seen = {
        fingerprint(example["text"]) for split in (data, *splits) for example in read_split(split)
    }
    kept = []
    for text in texts:
        if (found := fingerprint(text)) not in seen:
            seen.add(found)
            kept.append({"text": text})
    if not kept:
        raise TightropeError(
            f"distill.unlabelled = {source}: every text occurs in the data of the model; take "
            "other texts, or remove the key"
        )
    return kept


def write_outputs(folder: Path, model: Any, rows: Sequence[Arrays], *, states: bool) -> None:
    """Write logits, numbers of tokens and, if asked for, states of all rows into `folder`."""

    def call(batch: Arrays) -> tuple[np.ndarray, Any]:
        """Return logits, and states [batch, tokens, hidden] or None."""
        inputs = {name: torch.from_numpy(one).to(model.device) for name, one in batch.items()}
        with torch.inference_mode():
            outputs = model(**inputs, output_hidden_states=states)
        found = tokens_of(outputs.hidden_states[-1]).half().cpu().numpy() if states else None
        return outputs.logits.float().cpu().numpy(), found

    if "input_ids" in rows[0]:
        tokens = np.array([len(row["input_ids"]) for row in rows], np.int64)
    else:  # of an image 1 without states
        _, first = call(stack([rows[0]]))
        tokens = np.full(len(rows), 1 if first is None else first.shape[1], np.int64)
    starts = np.cumsum(tokens) - tokens
    logits = np.zeros((len(rows), model.config.num_labels), np.float32)
    kept = None
    if states:
        shape = (int(tokens.sum()), hidden_size(model))
        kept = open_memmap(folder / STATES_FILE, mode="w+", dtype=np.float16, shape=shape)
    with ProgressBar("teacher", len(rows)) as bar:
        for indices, batch in batches_by_length(rows, BATCH):
            logits[indices], found = call(batch)
            if kept is not None:
                for index, row in zip(indices, found, strict=True):
                    kept[starts[index] : starts[index] + tokens[index]] = row[: tokens[index]]
            bar.add(len(indices))
    if kept is not None:
        kept.flush()
    np.save(folder / LOGITS_FILE, logits)
    np.save(folder / TOKENS_FILE, tokens)
