"""Saved state of a training run, from which it resumes after it was killed."""

import shutil
import time
from pathlib import Path
from typing import Any, TypedDict

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file

from tightrope.artifacts.content import read_artifact, write_artifact
from tightrope.artifacts.files import sha256, storage_errors
from tightrope.errors import ArtifactError

EVERY_S = 60.0
Tensors = dict[str, torch.Tensor]


class Saved(TypedDict):
    """state.json: the key of a training run, its tensor file, and the values beside the tensors."""

    key: str
    file: str
    sha256: str
    facts: dict[str, Any]


class TrainingState:
    """Folder with the last state: `state.json`, and the tensor file that it names.

    The JSON is written last, so that a complete state exists at any moment. A state with another
    `key`, or whose tensors have another sha256, counts as missing.
    """

    def __init__(self, folder: Path | str, key: str, *, every_s: float = EVERY_S) -> None:
        """Use `folder` for training run `key`; a new state is due `every_s` after the last."""
        self.folder, self.key, self.every_s = Path(folder), key, every_s
        self.file = self.folder / "state.json"
        self.written = time.monotonic()

    def due(self) -> bool:
        """Whether the last state is older than `every_s`."""
        return time.monotonic() - self.written >= self.every_s

    def write(self, tensors: Tensors, values: dict[str, Any], *, step: int) -> None:
        """Replace the last state by the state after `step` steps; raises StorageError."""
        tensors = {name: value.cpu() for name, value in tensors.items()}
        target = self.folder / f"step-{step}.safetensors"
        with storage_errors(target):
            self.folder.mkdir(parents=True, exist_ok=True)
            part = target.with_suffix(".part")
            save_file(tensors, part)
            part.replace(target)
        document = {"file": target.name, "sha256": sha256(target), "key": self.key}
        write_artifact(self.file, {**document, "facts": values})
        for old in self.folder.iterdir():
            if old not in (target, self.file):
                old.unlink()
        self.written = time.monotonic()

    def read(self) -> tuple[Tensors, dict[str, Any]] | None:
        """Return tensors and values of the last state of this training run, None if missing."""
        try:
            document = read_artifact(self.file, Saved)
            if document["key"] != self.key:
                return None
            tensors = self.folder / Path(document["file"]).name
            if sha256(tensors) != document["sha256"]:
                return None
            return load_file(tensors), document["facts"]
        except (ArtifactError, SafetensorError):
            return None

    def clear(self) -> None:
        """Delete the state; raises StorageError."""
        with storage_errors(self.folder):
            if self.folder.exists():
                shutil.rmtree(self.folder)
