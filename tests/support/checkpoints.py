"""Checkpoints as rules prepare_checkpoint and train_model make them."""

import io
from pathlib import Path
from typing import Any

import numpy as np
from manifests import CHECKPOINT
from safetensors.numpy import save_file
from tightrope.artifacts.manifest import write_manifest
from tightrope.signature import TEXT


def make_checkpoint(
    folder: Path, source: str, data: Path, *, task: str = TEXT, quantized: bool = False, **how: Any
) -> Path:
    """Keep or train the model of that source; returns the manifest in `folder`/checkpoint.

    `data` are a train split, or all of the data of what is not trained. `how` are settings of the
    training, by default none, and its `terminal`. It imports PyTorch.
    """
    from tightrope.checkpoint.source import prepare_checkpoint
    from tightrope.training.train import TrainingSettings, train_model

    begun, kept = (folder / name / "checkpoint.json" for name in ("source", "checkpoint"))
    known: dict[str, Any] = {"expected_sha256": None, "seed": 0, "task": task}
    prepare_checkpoint(begun, source=source, quantized=quantized, **known)
    terminal = how.pop("terminal", None) or io.StringIO()
    settings = TrainingSettings(**{"recipe": None, "inputs": {}, "threads": 1, "seed": 0, **how})
    train_model(kept, settings, source=begun, data=data, terminal=terminal)
    return kept


def learnt_checkpoint(folder: Path, weights: dict[str, np.ndarray], **learnt: Any) -> Path:
    """A checkpoint of these weights, which has learnt these `ranges` and maybe `outputs`."""
    folder.mkdir()
    stored = {name: np.ascontiguousarray(one) for name, one in weights.items()}
    save_file(stored, folder / "model.safetensors")
    write_manifest(folder / "checkpoint.json", **CHECKPOINT, qat={"scheme": "u8s8", **learnt})
    return folder / "checkpoint.json"
