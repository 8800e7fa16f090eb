"""A folder as one artifact: its manifest holds the sha256 of every other file in it.

And which checkpoint a file was made from, and whether that is the one in use: by content, not by
the name of the model, so a renamed model keeps its files.
"""

import hashlib
import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self, TypeVar, cast

from tightrope.artifacts.content import read_artifact, write_artifact
from tightrope.artifacts.failures import metadata
from tightrope.artifacts.files import sha256, storage_errors
from tightrope.artifacts.manifest_types import CheckpointManifest, EngineManifest, Manifest
from tightrope.errors import ArtifactError

SCHEMA = 1
Kind = TypeVar("Kind", bound=Manifest)
# where files are that are made, below the folder of the run or the prefix of a module
FOLDERS = ("artifacts", "reports")
# metadata key of an ONNX file: the identity of the checkpoint that it was made from
CHECKPOINT = "tightrope.checkpoint"


@dataclass(frozen=True)
class Artifacts:
    """A variant of a model: the manifests of its engine, its checkpoint and a split."""

    model: str
    variant: str
    engine: Path
    checkpoint: Path
    data: Path

    @classmethod
    def of(cls, job: Any) -> Self:
        """Return those of a Snakemake job, by its wildcards and inputs."""
        names, inputs = job.wildcards, job.input
        paths = (Path(one) for one in (inputs.engine, inputs.checkpoint, inputs.data))
        return cls(names.model, names.variant, *paths)


def write_manifest(path: Path | str, **fields: Any) -> None:
    """Write `fields`, and sha256 and size of every other file in the folder; call this last."""
    path = Path(path)
    files = {
        file.relative_to(path.parent).as_posix(): {
            "sha256": sha256(file),
            "size_bytes": file.stat().st_size,
        }
        for file in sorted(path.parent.rglob("*"))
        if file.is_file() and file != path and not file.name.startswith(".")
    }
    write_artifact(path, {**fields, "schema": SCHEMA, "files": files})


def named(model: str | None) -> dict[str, str]:
    """Return the field of a manifest with the name of its model, none for what has no name."""
    return {} if model is None else {"model": model}


def read_manifest(path: Path | str, kind: type[Kind]) -> Kind:
    """Return the manifest after verifying every file that it lists.

    Raises ArtifactError naming the file that is missing, truncated or changed, or as
    `open_manifest` does.
    """
    manifest = open_manifest(path, kind)
    for name, expected in manifest["files"].items():
        # splits list a file of another folder
        file = Path(os.path.normpath(Path(path).parent / name))
        stale = path if file.is_relative_to(Path(path).parent) else file.parent
        remedy = f"delete {stale} and run again"
        if not file.is_file():
            raise ArtifactError(f"{file}: missing, {path} lists it; {remedy}")
        if (size := file.stat().st_size) != expected["size_bytes"]:
            words = f"{size} bytes, {path} says {expected['size_bytes']}"
            raise ArtifactError(f"{file}: {words}; {remedy}")
        if sha256(file) != expected["sha256"]:
            raise ArtifactError(f"{file}: its content is not the one in {path}; {remedy}")
    return manifest


def open_manifest(path: Path | str, kind: type[Kind]) -> Kind:
    """Return the manifest without looking at the files that it lists.

    Raises ArtifactError where it is not a manifest of this kind, naming the field.
    """
    return cast(Kind, read_artifact(path, kind))


def classes_of(checkpoint: Path | str) -> int:
    """Return the number of classes of the checkpoint with this manifest, after verifying it."""
    return len(read_manifest(checkpoint, CheckpointManifest)["labels"])


def clear_folder(path: Path | str) -> Path:
    """Create or empty the folder of manifest `path`, so that no stale file is listed; return it."""
    folder = Path(path).parent
    with storage_errors(folder):
        folder.mkdir(parents=True, exist_ok=True)
        for file in sorted(folder.rglob("*"), reverse=True):
            if file.is_dir():
                file.rmdir()
            else:
                file.unlink()
    return folder


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
