"""Calibrate a model: write the statistics of its tensors on samples to a cache, and read it."""

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NotRequired, TypedDict

from tightrope.artifacts.content import write_artifact
from tightrope.artifacts.failures import read_json_or_raise
from tightrope.artifacts.files import sha256
from tightrope.errors import ArtifactError, TightropeError
from tightrope.inputs.arrays import Arrays, batches_of_equal_length
from tightrope.inputs.encode import Example, load_encoder, read_split
from tightrope.inputs.texts import truncation_of

SCHEMA = 2
# first seed of the random inputs, beyond the seeds of any data source `random`
RANDOM_SEED = 7 * 10**18


class Channels(TypedDict):
    """Lowest, highest and mean value of each channel of a tensor."""

    low: list[float]
    high: list[float]
    mean: list[float]


class Cache(TypedDict):
    """A calibration cache, see `calibrate`; a range is the lowest and highest value."""

    method: str
    samples: int
    model_sha256: str
    samples_sha256: NotRequired[str | None]
    options: NotRequired[dict[str, Any]]
    ranges: dict[str, tuple[float, float]]
    channels: dict[str, Channels]


def write_cache(path: Path | str, **fields: Any) -> None:
    """Write a cache."""
    write_artifact(path, {**fields, "schema": SCHEMA})


def read_cache(path: Path | str, *, model: Path | str) -> dict[str, Any]:
    """Return the cache in `path`; refuse it if it was edited or belongs to another model."""
    document = read_any_cache(path)
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


def calibrate(
    onnx_path: Path | str,
    data: Path | str,
    checkpoint: Path | str,
    target: Path | str,
    *,
    method: str,
    samples: int,
    max_sequence: int,
    percentile: float | None,
    threads: int,
    libraries: dict[str, str | None],
) -> None:
    """Write the calibration cache of the first `samples` examples of the split `data`.

    Methods are those of `collect_statistics`, `random` (minmax on uniform random inputs), `qat`
    (minmax where quantization-aware training of the checkpoint has learnt no range), and `nncf`,
    which stores the sample list only: NNCF collects statistics in the build. Raises ArtifactError
    where the ONNX file was made from another checkpoint.
    """
    from tightrope.int8.ranges import collect_statistics, with_learnt_ranges
    from tightrope.onnx.file import require_onnx_of

    examples = calibration_examples(data, samples, random=method == "random")
    share: dict[str, Any] = {} if percentile is None else {"percentile": percentile}
    rows = load_encoder(checkpoint, max_sequence=max_sequence)(examples)
    require_onnx_of(onnx_path, checkpoint)
    found: dict[str, Any] = {"ranges": {}, "channels": {}}
    if method != "nncf":
        options: dict[str, Any] = {"method": method, "percentile": percentile, "threads": threads}
        found = collect_statistics(onnx_path, rows, **options)._asdict()
    if method == "qat":
        found["ranges"] = with_learnt_ranges(found["ranges"], onnx_path, checkpoint)
    write_cache(
        target,
        method=method,
        samples=samples,
        options={"max_sequence": max_sequence, **share},
        model_sha256=sha256(onnx_path),
        samples_sha256=samples_sha256(examples),
        libraries=libraries,
        truncation=truncation_of(rows),
        **found,
    )


def calibration_examples(data: Path | str, samples: int, *, random: bool) -> Sequence[Example]:
    """Return the first `samples` examples of the split `data`, or that many random inputs.

    Raises TightropeError where the split has fewer.
    """
    if random:
        return [{"random": RANDOM_SEED + number} for number in range(samples)]
    examples = read_split(data)
    if samples > len(examples):
        raise TightropeError(
            f"{data}: {len(examples)} calibration examples, {samples} are asked for; take fewer "
            "calibration.samples or a larger data source"
        )
    return examples[:samples]


def samples_sha256(examples: Sequence[Example]) -> str:
    """Return the hex digest of examples as sorted JSON, with images replaced by their digest."""
    plain = [
        {
            key: hashlib.sha256(value).hexdigest() if isinstance(value, bytes) else value
            for key, value in example.items()
        }
        for example in examples
    ]
    return hashlib.sha256(json.dumps(plain, sort_keys=True).encode()).hexdigest()


def calibration_batches(*, onnx: str, calibration: str, data: str, checkpoint: str) -> list[Arrays]:
    """Return the samples of the calibration cache of `onnx`, one per batch, without padding.

    Raises ArtifactError for the cache of another model or of other samples, TightropeError for an
    imported cache, which has no sample list.
    """
    cache = read_cache(calibration, model=onnx)
    if "imported" in cache:
        raise TightropeError(
            f"{calibration}: imported ({cache['imported']}), it holds no samples, and this engine "
            "collects ranges of its own from them; delete the file to calibrate here"
        )
    examples = calibration_examples(data, cache["samples"], random=cache["method"] == "random")
    if cache["samples_sha256"] != samples_sha256(examples):
        raise ArtifactError(f"{calibration}: the cache of other samples than {data}; delete it")
    encode = load_encoder(checkpoint, max_sequence=cache["options"]["max_sequence"])
    return list(batches_of_equal_length(encode(examples), tokens=1))
