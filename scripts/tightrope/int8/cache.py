"""Read and write calibration caches, each bound to one model."""

from pathlib import Path
from typing import Any, TypedDict

from tightrope.artifacts.content import write_artifact
from tightrope.artifacts.failures import read_json_or_raise
from tightrope.artifacts.files import sha256
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
    """Write a cache."""
    write_artifact(path, {**fields, "schema": SCHEMA})


def read_cache(path: Path | str, *, model: Path | str) -> dict[str, Any]:
    """Return the cache in `path`; refuse it if it was edited or belongs to another model."""
    document = read_any_cache(path)
    if missing := [name for name in REQUIRED if name not in document]:
        raise ArtifactError(f"{path}: has no {missing[0]}; delete it and run again")
    if document["model_sha256"] != sha256(model):
        raise ArtifactError(f"{path}: the cache of another model than {model}; delete it")
    return document


def read_any_cache(path: Path | str) -> dict[str, Any]:
    """Return the cache in `path`, of any model; refuse it if it was edited.

    Raises WorkFailed where calibration has failed.
    """
    document: dict[str, Any] = read_json_or_raise(path, Cache)
    if document.get("schema") != SCHEMA:
        raise ArtifactError(f"{path}: a cache of another version; delete it and run again")
    return document
