"""Measure accuracy: record every prediction of a variant on the evaluation split.

And whether those of a quantized engine have collapsed, and which tensor is at fault.
"""

import time
from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, TypedDict

import numpy as np

from tightrope.artifacts.content import read_artifact
from tightrope.artifacts.files import sha256
from tightrope.artifacts.manifest import Artifacts, classes_of, read_manifest
from tightrope.artifacts.manifest_types import EngineManifest, SplitManifest
from tightrope.engines.load import Run, load_engine
from tightrope.errors import WorkFailed
from tightrope.inputs.arrays import Arrays, batches_by_length
from tightrope.inputs.encode import load_encoder, read_split
from tightrope.inputs.texts import truncation_of
from tightrope.jobs.child import fill_in
from tightrope.jobs.execution import Execution
from tightrope.jobs.progress import ProgressBar, Tell, untold
from tightrope.measure.run import can_be_timed, facts_of_run
from tightrope.records.accuracy import AccuracyRecord, Logits
from tightrope.statistics import share

# rows per chunk: sorted by length together; the time limit is checked after each chunk
CHUNK = 256
# examples of the noise of a collapsed engine's tensors
NOISE_SAMPLES = 128
BATCH = 32
# share of a single class from which predictions are collapsed, unless float also reaches it
CONSTANT = 0.98
# agreement with float from which an engine passes, even if float itself is close to a threshold
MOSTLY = 0.9
Noise = Callable[[], list[dict[str, Any]]]


class Predicted(TypedDict):
    """What is read of the baseline's record, whose logits stay where they are."""

    predictions: list[int]


def measure_accuracy(
    artifacts: Artifacts,
    target: Path | str,
    *,
    max_sequence: int,
    max_seconds: float,
    execution: Execution,
    baseline: Path | str | None = None,
    quantized: Path | str | None = None,
) -> None:
    """Write the AccuracyRecord of a variant with its logits, also if it cannot run.

    Covers the first examples that the engine predicts within `max_seconds`. Without labels in the
    data, nothing is predicted. Whether a quantized engine has collapsed is seen beside the
    predictions in the record of its `baseline`; `quantized` is its file with Q/DQ, None where it
    quantizes itself. A transient failure raises TightropeError unless this is the last attempt.
    """
    source = read_manifest(artifacts.data, SplitManifest)
    record = AccuracyRecord(
        **facts_of_run(artifacts, execution), data_sha256=sha256(artifacts.data)
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
    predictions, margins = classes_and_margins(logits)
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


def check_logits(logits: Any, inputs: Arrays, *, classes: int) -> None:
    """Raise WorkFailed unless `logits` are finite numbers [batch of the inputs, classes]."""
    batch, shape = len(next(iter(inputs.values()))), np.shape(logits)
    if shape != (batch, classes):
        reason = f"gives outputs of shape {list(shape)} in the place of {[batch, classes]}"
        raise WorkFailed(reason, transient=False)
    if not np.isfinite(logits).all():
        raise WorkFailed("gives logits that are not numbers", transient=False)


def answers(logits: Any, inputs: Arrays, *, classes: int) -> list[tuple[int, float]]:
    """Return the class and the margin (highest logit minus the second) per row of the batch.

    Raises WorkFailed as `check_logits` does.
    """
    check_logits(logits, inputs, classes=classes)
    return list(zip(*classes_and_margins(logits), strict=True))


def classes_and_margins(logits: Any) -> tuple[list[int], list[float]]:
    """Return the class of each row of checked logits, and the margin of each."""
    second, first = np.sort(logits, axis=1)[:, -2:].T
    return np.argmax(logits, axis=1).tolist(), (first - second).tolist()


def answer_chunk(
    run: Run, rows: Sequence[Arrays], size: int, classes: int, tell: Tell = untold
) -> Logits:
    """Return the checked logits of each row, in their order; batches hold rows of similar length.

    `tell` gets the number of rows of each batch that is answered.
    """
    found = np.empty((len(rows), classes), np.float32)
    for indices, batch in batches_by_length(rows, size):
        logits = run(batch)
        check_logits(logits, batch, classes=classes)
        found[indices] = logits
        tell(len(indices))
    return found


def largest_batch(options: dict[str, Any]) -> int:
    """Return the rows per batch: BATCH, or fewer where an engine was built for fewer."""
    if profiles := options.get("profiles"):
        longest = max(most[1:] for _, _, most in profiles)
        return min(BATCH, max(most[0] for _, _, most in profiles if most[1:] == longest))
    buckets = options.get("buckets")
    return min(BATCH, max(buckets["batch"])) if buckets else BATCH


def collapsed(
    found: Sequence[int], expected: Sequence[int], labels: Sequence[int], noise: Noise | None
) -> dict[str, Any] | None:
    """Return `reason` and `tensors` where predictions have collapsed, None where they have not.

    `expected` are those of float for the same examples; of the longer ones the first count.
    `noise` returns what `quantization_noise` does, None for an engine that quantizes itself, whose
    `tensors` are empty.
    """
    count = min(len(found), len(expected))
    reason = collapse(found[:count], expected[:count], labels[:count]) if count else None
    if reason is None:
        return None
    tensors = noise() if noise else []
    return {"reason": f"collapsed: {reason}; {fault(tensors)}", "tensors": tensors}


def collapse(found: Sequence[int], expected: Sequence[int], labels: Sequence[int]) -> str | None:
    """Return why the predictions have collapsed, None where they have not.

    They are one answer to almost all examples, or no better than chance, the most frequent label,
    while those of float surely are.
    """
    count = len(labels)
    if right(found, expected) >= MOSTLY * count:
        return None
    if commonest(found) >= CONSTANT * count > commonest(expected):
        return f"one answer to {100 * commonest(found) / count:.0f} % of {count} examples"
    own, float_ = (share(right(answers, labels), count) for answers in (found, expected))
    chance = commonest(labels) / count
    if float_.low > chance >= own.low:
        return (
            f"accuracy {100 * own.value:.0f} % of {count} examples, {100 * float_.value:.0f} % in "
            f"float, {100 * chance:.0f} % by chance"
        )
    return None


def right(found: Sequence[int], expected: Sequence[int]) -> int:
    """Return how many are equal."""
    return sum(one == other for one, other in zip(found, expected, strict=True))


def commonest(values: Sequence[int]) -> int:
    """Return how often the most frequent value occurs."""
    return max(Counter(values).values())


def fault(tensors: list[dict[str, Any]]) -> str:
    """Describe the operator and tensor at fault: the noisiest with a finding, else the noisiest."""
    if not tensors:
        return "this engine quantizes itself, so the operator at fault is not known"
    worst = next((one for one in tensors if one["findings"]), tensors[0])
    words = (
        "; ".join(worst["findings"]) or f"{worst['sqnr_db']:.0f} dB above its quantization noise"
    )
    return f"at fault: operator {worst['operator']}, tensor {worst['tensor']}: {words}"
