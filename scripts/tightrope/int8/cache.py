"""Read and write calibration caches, sealed with a digest and bound to one model."""

from pathlib import Path
from typing import Any

from tightrope.artifacts.failures import read_json_or_raise
from tightrope.artifacts.files import digest, sha256, write_json
from tightrope.errors import ArtifactError

SCHEMA = 2


def write_cache(path: Path | str, **fields: Any) -> None:
    """Write a cache with a digest of its content."""
    document = {**fields, "schema": SCHEMA}
    write_json(path, {**document, "seal": digest(document)})


def read_cache(path: Path | str, *, model: Path | str) -> dict[str, Any]:
    """Return the cache in `path`; refuse it if it was edited or belongs to another model."""
    document = read_sealed(path)
    if document["model_sha256"] != sha256(model):
        raise ArtifactError(f"{path}: the cache of another model than {model}; delete it")
    return document


def read_sealed(path: Path | str) -> dict[str, Any]:
    """Return the cache in `path`, of any model; refuse it if it was edited.

    Raises WorkFailed where calibration has failed.
    """
    document = read_json_or_raise(path)
    seal = document.pop("seal", None) if isinstance(document, dict) else None
    if seal != digest(document) or document["schema"] != SCHEMA:
        raise ArtifactError(f"{path}: not the cache that was written; delete it and run again")
    return document
