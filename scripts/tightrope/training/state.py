"""The last state of a training, from which it goes on after it was killed."""

import shutil
import time
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file

from tightrope.artifacts.files import read_json, sha256, storage_errors, write_json
from tightrope.errors import ArtifactError

EVERY_S = 60.0
Tensors = dict[str, torch.Tensor]


class TrainingState:
    """A folder with the last state: `state.json`, and the tensors in the file that it names.

    The JSON is written last, so that there is a whole state at any moment. A state of another
    `key`, or one whose tensors are not those that were written, is as none.
    """

    def __init__(self, folder: Path | str, key: str, *, every_s: float = EVERY_S) -> None:
        """The state of the training `key` in `folder`, due again so many seconds after the last."""
        self.folder, self.key, self.every_s = Path(folder), key, every_s
        self.file = self.folder / "state.json"
        self.written = time.monotonic()

    def due(self) -> bool:
        """Whether the last state is so old that one is to be written."""
        return time.monotonic() - self.written >= self.every_s

    def write(self, tensors: Tensors, facts: dict[str, Any], *, step: int) -> None:
        """Replace the last state by that after `step` steps; raises StorageError."""
        tensors = {name: value.cpu() for name, value in tensors.items()}
        target = self.folder / f"step-{step}.safetensors"
        with storage_errors(target):
            self.folder.mkdir(parents=True, exist_ok=True)
            part = target.with_suffix(".part")
            save_file(tensors, part)
            part.replace(target)
        named = {"file": target.name, "sha256": sha256(target), "key": self.key}
        write_json(self.file, {**named, "facts": facts})
        for old in self.folder.iterdir():
            if old not in (target, self.file):
                old.unlink()
        self.written = time.monotonic()

    def read(self) -> tuple[Tensors, dict[str, Any]] | None:
        """Tensors and facts of the last state of this training, None where there is none."""
        try:
            document = read_json(self.file)
            if document["key"] != self.key:
                return None
            tensors = self.folder / document["file"]
            if sha256(tensors) != document["sha256"]:
                return None
            return load_file(tensors), document["facts"]
        except (ArtifactError, KeyError, TypeError):
            return None

    def clear(self) -> None:
        """Delete the state; raises StorageError."""
        with storage_errors(self.folder):
            if self.folder.exists():
                shutil.rmtree(self.folder)
