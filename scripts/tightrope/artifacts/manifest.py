"""A folder as one artifact: its manifest holds the sha256 of every other file in it."""

from pathlib import Path
from typing import Any

from tightrope.artifacts.files import read_json, sha256, storage_errors, write_json
from tightrope.errors import ArtifactError

SCHEMA = 1


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
    write_json(path, {**fields, "schema": SCHEMA, "files": files})


def read_manifest(path: Path | str) -> dict[str, Any]:
    """Return the manifest after verifying every file that it lists.

    Raises ArtifactError naming the file that is missing, truncated or changed.
    """
    path = Path(path)
    manifest = read_json(path)
    if not isinstance(manifest, dict) or not isinstance(manifest.get("files"), dict):
        raise ArtifactError(f"{path}: no manifest of Tightrope; delete it and run again")
    for name, expected in manifest["files"].items():
        file = path.parent / name
        if not file.is_file():
            raise ArtifactError(f"{file}: missing, {path} lists it; delete {path} and run again")
        size = file.stat().st_size
        if size != expected["size_bytes"]:
            raise ArtifactError(
                f"{file}: {size} bytes, {path} says {expected['size_bytes']}; "
                f"delete {path} and run again"
            )
        if sha256(file) != expected["sha256"]:
            raise ArtifactError(
                f"{file}: its content is not the one in {path}; delete {path} and run again"
            )
    return manifest


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
