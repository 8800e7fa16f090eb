"""Which checkpoint a file was made from, and whether that is the one in use.

By content, not by the name of the model: a renamed model keeps its files.
"""

import hashlib
import json
from pathlib import Path
from typing import Any

from tightrope.artifacts.failures import metadata
from tightrope.artifacts.manifest import open_manifest
from tightrope.artifacts.manifest_types import CheckpointManifest, EngineManifest
from tightrope.errors import ArtifactError

# metadata key of an ONNX file: the identity of the checkpoint that it was made from
CHECKPOINT = "tightrope.checkpoint"


def checkpoint_of(model: Any) -> str | None:
    """Return the identity of the checkpoint that an ONNX model was made from, if it says so."""
    return metadata(model).get(CHECKPOINT)


def identity(checkpoint: CheckpointManifest) -> str:
    """Return the SHA-256 of the names and digests of a checkpoint's files."""
    files = {name: file["sha256"] for name, file in checkpoint["files"].items()}
    return hashlib.sha256(json.dumps(files, sort_keys=True).encode()).hexdigest()


def require_descent(path: Path | str, made_from: str | None, checkpoint: Path | str) -> None:
    """Raise ArtifactError unless `made_from` is the identity of the checkpoint of that manifest.

    `path` is the file that names it.
    """
    if made_from != identity(open_manifest(checkpoint, CheckpointManifest)):
        raise ArtifactError(
            f"{path}: not made from {checkpoint}, maybe another model's; delete it and what it was "
            "built from, and run again"
        )


def require_engine_of(engine: Path | str, checkpoint: Path | str, variant: str) -> None:
    """Raise ArtifactError unless an engine is of that variant and, if built, of that checkpoint.

    Both paths are manifests.
    """
    built = open_manifest(engine, EngineManifest)
    if built["variant"] != variant:
        raise ArtifactError(
            f"{engine}: the engine of {built['variant']}, not of {variant}; delete it and run again"
        )
    if built["status"] == "ok":
        require_descent(engine, built["checkpoint"], checkpoint)


def require_model(checkpoint: Path | str, model: str) -> None:
    """Raise ArtifactError where the checkpoint of that manifest was made for another model."""
    named = open_manifest(checkpoint, CheckpointManifest).get("model", model)
    if named != model:
        raise ArtifactError(
            f"{checkpoint}: the checkpoint of model {named}, not of {model}; delete "
            f"{Path(checkpoint).parent} and run again"
        )


# what the source of a checkpoint begins with that is another model's
KIND = "model:"


def parent_of(checkpoint: CheckpointManifest) -> str | None:
    """Return the model that the model of a checkpoint starts from, else its teacher, else None."""
    source, distill = checkpoint["source"], checkpoint.get("distill")
    if source.startswith(KIND):
        return source.removeprefix(KIND)
    return None if distill is None else str(distill["from"])
