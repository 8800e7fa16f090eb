"""The calibration cache: the ranges of a model's tensors on a list of samples, as a file."""

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tqdm import tqdm

from tightrope.errors import ArtifactError, TightropeError
from tightrope.files import digest, read_json, sha256, write_json
from tightrope.inputs import Arrays, batches_of_equal_length, load_encoder, read_split
from tightrope.manifest import read_manifest

SCHEMA = 1
BATCH = 16
# operators whose inputs and outputs get a range; a scheme quantizes some of them
OPERATORS = ("Add", "Conv", "Gemm", "MatMul")


def calibrate(
    onnx_path: Path | str,
    data: Path | str,
    checkpoint: Path | str,
    target: Path | str,
    *,
    method: str,
    samples: int,
    max_sequence: int,
    threads: int,
) -> None:
    """Write the cache of the first `samples` examples of the calibration split.

    `minmax` keeps the lowest and highest value of each tensor. `nncf` keeps the sample list
    only: NNCF collects its own statistics from it when the engine is built.
    """
    rows = calibration_rows(data, checkpoint, samples=samples, max_sequence=max_sequence)
    batches = list(batches_of_equal_length(rows, BATCH))
    ranges = minmax_ranges(onnx_path, batches, threads=threads) if method == "minmax" else {}
    write_cache(
        target,
        method=method,
        samples=samples,
        options={"max_sequence": max_sequence, "operators": list(OPERATORS)},
        model_sha256=sha256(onnx_path),
        samples_sha256=calibration_sha256(data),
        ranges=ranges,
    )


def calibration_rows(
    data: Path | str, checkpoint: Path | str, *, samples: int, max_sequence: int
) -> list[Arrays]:
    """The first `samples` encoded examples of the calibration split.

    Raises TightropeError when the split has fewer.
    """
    examples = read_split(data, "calibration")
    if samples > len(examples):
        raise TightropeError(
            f"{data}: {len(examples)} calibration examples, {samples} are asked for; take fewer "
            "calibration.samples or a larger data source"
        )
    return load_encoder(checkpoint, max_sequence=max_sequence)(examples[:samples])


def calibration_batches(*, onnx: str, calibration: str, data: str, checkpoint: str) -> list[Arrays]:
    """The samples of the calibration cache of `onnx`, one a batch and without padding.

    Raises TightropeError for an imported cache, which holds ranges and no list of samples.
    """
    cache = read_cache(calibration, model=onnx)
    if "imported" in cache:
        raise TightropeError(
            f"{calibration}: imported ({cache['imported']}), it holds no samples, and this engine "
            "collects ranges of its own from them; delete the file to calibrate here"
        )
    sequence = cache["options"]["max_sequence"]
    rows = calibration_rows(data, checkpoint, samples=cache["samples"], max_sequence=sequence)
    return list(batches_of_equal_length(rows, 1))


def calibration_sha256(data: Path | str) -> str:
    """The sha256 of the calibration split beside manifest `data`."""
    manifest = read_manifest(data)
    return manifest["files"][manifest["splits"]["calibration"]["file"]]["sha256"]


def minmax_ranges(
    onnx_path: Path | str, batches: list[Arrays], *, threads: int
) -> dict[str, list[float]]:
    """Lowest and highest value of each tensor that enters or leaves an operator of OPERATORS."""
    import onnxruntime
    from onnxruntime.quantization.calibrate import CalibrationMethod, create_calibrator

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    with tempfile.TemporaryDirectory() as folder:
        augmented = str(Path(folder, "augmented.onnx"))
        calibrator = create_calibrator(
            Path(onnx_path), OPERATORS, augmented, CalibrationMethod.MinMax
        )
        calibrator.infer_session = onnxruntime.InferenceSession(
            augmented, options, providers=["CPUExecutionProvider"]
        )
        # one call a batch: the memory stays that of one batch whatever the sample count
        for batch in tqdm(batches, desc="calibrating", unit="batch"):
            calibrator.collect_data(OneBatch(batch))
        found = calibrator.compute_data()
    return {
        name: [float(bound.min()) for bound in value.range_value]
        for name, value in sorted(found.items())
    }


class OneBatch:
    """The reader of one batch that ONNX Runtime's calibrators take."""

    def __init__(self, batch: Arrays) -> None:
        self.batches: Iterator[Arrays] = iter([batch])

    def get_next(self) -> Arrays | None:
        """The batch, then None."""
        return next(self.batches, None)


def write_cache(path: Path | str, **fields: Any) -> None:
    """Write a cache with a digest of its own content."""
    document = {**fields, "schema": SCHEMA}
    write_json(path, {**document, "seal": digest(document)})


def read_cache(path: Path | str, *, model: Path | str) -> dict[str, Any]:
    """The cache in `path`; refused when it was edited or belongs to another model."""
    document = read_sealed(path)
    if document["model_sha256"] != sha256(model):
        raise ArtifactError(f"{path}: the cache of another model than {model}; delete it")
    return document


def read_sealed(path: Path | str) -> dict[str, Any]:
    """The cache in `path`, of whichever model; refused when it was edited."""
    document = read_json(path)
    seal = document.pop("seal", None) if isinstance(document, dict) else None
    if seal != digest(document):
        raise ArtifactError(f"{path}: not the cache that was written; delete it and run again")
    return document
