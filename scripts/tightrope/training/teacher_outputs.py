"""Run a teacher on the examples that a student is trained on, and keep its outputs."""

import json
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.lib.format import open_memmap
from tqdm import tqdm

from tightrope.artifacts.files import digest, sha256, storage_errors
from tightrope.artifacts.manifest import clear_folder, read_manifest, write_manifest
from tightrope.artifacts.manifest_types import CheckpointManifest
from tightrope.data.source import load_kind, parse_source
from tightrope.data.splits import fingerprint
from tightrope.errors import TightropeError
from tightrope.inputs.arrays import Arrays, batches_by_length, stack
from tightrope.inputs.encode import Example, load_encoder, read_split
from tightrope.model.module import load_module
from tightrope.signature import IMAGE, TEXT
from tightrope.training.step import prepare_device
from tightrope.training.teaching import (
    LOGITS_FILE,
    STATES_FILE,
    TEXTS_FILE,
    TOKENS_FILE,
    digest_of,
    hidden_size,
    tokens_of,
)

BATCH = 32


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
    for indices, batch in tqdm(
        batches_by_length(rows, BATCH), "teacher", -(-len(rows) // BATCH), mininterval=2
    ):
        logits[indices], found = call(batch)
        if kept is not None:
            for index, row in zip(indices, found, strict=True):
                kept[starts[index] : starts[index] + tokens[index]] = row[: tokens[index]]
    if kept is not None:
        kept.flush()
    np.save(folder / LOGITS_FILE, logits)
    np.save(folder / TOKENS_FILE, tokens)
