"""A folder as one artifact: its manifest holds the sha256 of every other file in it."""

import os
from pathlib import Path
from typing import Any, TypeVar, cast

from tightrope.artifacts.content import read_artifact, write_artifact
from tightrope.artifacts.files import sha256, storage_errors
from tightrope.artifacts.manifest_types import CheckpointManifest, Manifest
from tightrope.errors import ArtifactError

SCHEMA = 1
Kind = TypeVar("Kind", bound=Manifest)


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
