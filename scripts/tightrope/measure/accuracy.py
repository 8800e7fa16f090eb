"""Measure accuracy: record every prediction of a variant on the evaluation split."""

import time
from collections.abc import Sequence
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, TypedDict

import numpy as np

from tightrope.artifacts.content import read_artifact
from tightrope.artifacts.files import sha256
from tightrope.artifacts.manifest import classes_of, read_manifest
from tightrope.artifacts.manifest_types import EngineManifest, SplitManifest
from tightrope.artifacts.paths import Artifacts
from tightrope.engines.load import load_engine
from tightrope.inputs.arrays import Arrays
from tightrope.inputs.encode import load_encoder, read_split
from tightrope.inputs.texts import truncation_of
from tightrope.jobs.child import fill_in
from tightrope.jobs.execution import Execution
from tightrope.jobs.progress import ProgressBar
from tightrope.measure.answers import answer_chunk, classes_and_margins, largest_batch
from tightrope.measure.collapse import collapsed
from tightrope.measure.run import can_be_timed, facts_of_run
from tightrope.records.accuracy import AccuracyRecord, Logits

# rows per chunk: sorted by length together; the time limit is checked after each chunk
CHUNK = 256
# examples of the noise of a collapsed engine's tensors
NOISE_SAMPLES = 128


class Predicted(TypedDict):
    """What is read of the baseline's record, whose logits stay where they are."""

    predictions: list[int]


def measure_accuracy(
    artifacts: Artifacts,
    target: Path | str,
    *,
    model: str,
    variant: str,
    max_sequence: int,
    max_seconds: float,
    execution: Execution,
    baseline: Path | str | None = None,
    quantized: Path | str | None = None,
) -> None:
    """Write the AccuracyRecord of `variant` with its logits, also if it cannot run.

    Covers the first examples that the engine predicts within `max_seconds`. Without labels in the
    data, nothing is predicted. Whether a quantized engine has collapsed is seen beside the
    predictions in the record of its `baseline`; `quantized` is its file with Q/DQ, None where it
    quantizes itself. A transient failure raises TightropeError unless this is the last attempt.
    """
    source = read_manifest(artifacts.data, SplitManifest)
    record = AccuracyRecord(
        **facts_of_run(artifacts, execution, model=model, variant=variant),
        data_sha256=sha256(artifacts.data),
    )
    if can_be_timed(record, artifacts.engine) and source["labels"] is not None:
        work = partial(
            predict,
            artifacts,
            max_sequence=max_sequence,
            max_seconds=max_seconds,
            threads=execution.threads,
            expected=read_artifact(baseline, Predicted)["predictions"] if baseline else None,
            quantized=quantized,
        )
        fill_in(record, work, limits=execution.limits)
    record.write(target)


def predict(
    artifacts: Artifacts,
    *,
    max_sequence: int,
    max_seconds: float,
    threads: int,
    expected: list[int] | None,
    quantized: Path | str | None,
) -> dict[str, Any]:
    """Return, in the child, `labels`, `predictions`, `margins`, `logits` in the split's order.

    And `truncation`, that of all texts of the split, and `collapsed` beside the `expected`
    predictions. Only the first whole chunks where the engine is too slow for all examples in
    `max_seconds`.
    """
    began = time.monotonic()
    examples = read_split(artifacts.data)
    rows = load_encoder(artifacts.checkpoint, max_sequence=max_sequence)(examples)
    run, _ = load_engine(artifacts.engine, threads=threads)
    classes = classes_of(artifacts.checkpoint)
    size = largest_batch(read_manifest(artifacts.engine, EngineManifest)["options"])
    chunks: list[Logits] = []
    with ProgressBar("predicting", len(rows)) as bar:
        done = 0.0

        def tell(count: float) -> None:
            nonlocal done
            done += count
            # a slow engine ends at the time limit
            bar.reach(max(done, len(rows) * (time.monotonic() - began) / max_seconds))

        for start in range(0, len(rows), CHUNK):
            if time.monotonic() - began > max_seconds and chunks:
                break
            chunks.append(answer_chunk(run, rows[start : start + CHUNK], size, classes, tell))
    logits = np.concatenate(chunks)
    labels = [example["label"] for example in islice(examples, len(logits))]
    predictions, margins = map(list, zip(*classes_and_margins(logits), strict=True))
    some = rows[:NOISE_SAMPLES]
    noise = partial(noise_of, quantized, artifacts, some, threads) if quantized else None
    return {
        "truncation": truncation_of(rows),
        "labels": labels,
        "predictions": predictions,
        "collapsed": collapsed(predictions, expected, labels, noise) if expected else None,
        "margins": margins,
        "logits": logits,
    }


def noise_of(
    quantized: Path | str, artifacts: Artifacts, rows: Sequence[Arrays], threads: int
) -> list[dict[str, Any]]:
    """Return the quantization noise of each tensor; ArtifactError for the file of another model."""
    # import onnx, which an engine that has not collapsed does not need
    from tightrope.int8.quantization_noise import quantization_noise
    from tightrope.onnx.file import require_onnx_of

    require_onnx_of(quantized, artifacts.checkpoint)
    return quantization_noise(quantized, rows, threads=threads)
