"""A tiny classifier of texts that is trained within seconds, outside any project."""

import io
from pathlib import Path
from typing import Any

import numpy as np
import torch
from splits import prepare_splits, split_of
from tightrope.checkpoint.source import prepare_checkpoint
from tightrope.inputs.arrays import stack
from tightrope.inputs.encode import load_encoder, read_split
from tightrope.model.module import load_module
from tightrope.training.train import TrainingSettings, train_model

TINY = (
    "scratch:bert?hidden_size=32&num_hidden_layers=2&num_attention_heads=2&intermediate_size=64"
    "&vocab_size=200&max_position_embeddings=64"
)
RECIPE = {"epochs": 4, "batch": 16, "learning_rate": 5e-3, "sequence": 32, "amp": "off"}


def prepare_source(folder: Path, source: str = TINY) -> Path:
    manifest = folder / "checkpoint.json"
    prepare_checkpoint(manifest, source=source, expected_sha256=None, seed=0)
    return manifest


def prepare_texts(folder: Path, labels: tuple[str, str] = ("bad", "good")) -> Path:
    """Sentences whose label is told by one word of them."""
    words = ["film", "book", "song", "play", "story", "actor", "scene", "end", "joke", "plot"]
    lines = ["text,label"]
    for i in range(200):
        a, b = words[i % 10], words[i // 10 % 10]
        mood = i % 2
        lines.append(f"{'a fine' if mood else 'an awful'} {a} {b} {i},{labels[mood]}")
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "moods.csv").write_text("\n".join(lines))
    manifest = folder / "data" / "data.json"
    source, columns = f"files:{folder}/moods.csv", {"text": "text", "label": "label"}
    sizes = {"train": 120, "evaluation": 40}
    prepare_splits(manifest, source=source, columns=columns, splits=sizes, pool=20, seed=0)
    return manifest


def train(
    folder: Path, source: Path, data: Path, recipe: dict | None = None, **options: Any
) -> Path:
    manifest = folder / "checkpoint.json"
    given = {"terminal": io.StringIO(), **options}
    files = {
        name: given.pop(name) for name in ("terminal", "micro_batches", "teacher") if name in given
    }
    settings = TrainingSettings(recipe=recipe, **{"inputs": {}, "threads": 1, "seed": 0, **given})
    train_model(manifest, settings, source=source, data=split_of(data, "train"), **files)
    return manifest


def logits(checkpoint: Path, data: Path) -> np.ndarray:
    """The answers to the evaluation split."""
    rows = load_encoder(checkpoint, max_sequence=32)(read_split(split_of(data, "evaluation")))
    batch = {name: torch.from_numpy(array) for name, array in stack(rows).items()}
    with torch.inference_mode():
        return load_module(checkpoint.parent, torch.float32)(**batch).logits.numpy()


def accuracy(checkpoint: Path, data: Path) -> float:
    """The share of right answers on the evaluation split."""
    labels = [example["label"] for example in read_split(split_of(data, "evaluation"))]
    return float(np.mean(logits(checkpoint, data).argmax(-1) == labels))
