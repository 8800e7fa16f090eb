"""Read and write calibration caches, sealed with a digest and bound to one model."""

from pathlib import Path
from typing import Any, TypedDict

from tightrope.artifacts.failures import read_json_or_raise
from tightrope.artifacts.files import digest, require_type, sha256
from tightrope.artifacts.seals import write_sealed_json
from tightrope.errors import ArtifactError

SCHEMA = 2
# what the cache of a model has in any case
REQUIRED = ("method", "samples", "model_sha256", "ranges", "channels")


class Channels(TypedDict):
    """Lowest, highest and mean value of each channel of a tensor."""

    low: list[float]
    high: list[float]
    mean: list[float]


class Cache(TypedDict, total=False):
    """A calibration cache, see `calibrate.calibrate`; a range is the lowest and highest value."""

    method: str
    samples: int
    model_sha256: str
    samples_sha256: str | None
    options: dict[str, Any]
    ranges: dict[str, tuple[float, float]]
    channels: dict[str, Channels]


def write_cache(path: Path | str, **fields: Any) -> None:
    """Write a cache with a digest of its content."""
    document = {**fields, "schema": SCHEMA}
    write_sealed_json(path, {**document, "seal": digest(document)})


def read_cache(path: Path | str, *, model: Path | str) -> dict[str, Any]:
    """Return the cache in `path`; refuse it if it was edited or belongs to another model."""
    document = read_sealed(path)
    if missing := [name for name in REQUIRED if name not in document]:
        raise ArtifactError(f"{path}: has no {missing[0]}; delete it and run again")
    if document["model_sha256"] != sha256(model):
        raise ArtifactError(f"{path}: the cache of another model than {model}; delete it")
    return document


def read_sealed(path: Path | str) -> dict[str, Any]:
    """Return the cache in `path`, of any model; refuse it if it was edited.

    Raises WorkFailed where calibration has failed.
    """
    document = read_json_or_raise(path)
    seal = document.pop("seal", None) if isinstance(document, dict) else None
    if seal != digest(document) or document.get("schema") != SCHEMA:
        raise ArtifactError(f"{path}: not the cache that was written; delete it and run again")
    require_type(path, document, Cache)
    return document
