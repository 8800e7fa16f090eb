"""Measure accuracy: record every prediction of a variant on the evaluation split."""

import time
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from tightrope.artifacts.files import sha256
from tightrope.artifacts.manifest import classes_of, read_manifest
from tightrope.artifacts.manifest_types import EngineManifest, SplitManifest
from tightrope.artifacts.paths import Artifacts
from tightrope.engines.load import load_engine
from tightrope.inputs.encode import load_encoder, read_split
from tightrope.inputs.texts import truncation_of
from tightrope.jobs.child import fill_in
from tightrope.jobs.execution import Execution
from tightrope.jobs.progress import ProgressBar
from tightrope.measure.answers import Answer, answer_chunk, largest_batch
from tightrope.measure.run import can_be_timed, facts_of_run
from tightrope.records.accuracy import AccuracyRecord

# rows per chunk: sorted by length together; the time limit is checked after each chunk
CHUNK = 256


def measure_accuracy(
    artifacts: Artifacts,
    target: Path | str,
    *,
    model: str,
    variant: str,
    max_sequence: int,
    max_seconds: float,
    execution: Execution,
) -> None:
    """Write the AccuracyRecord of `variant` with its logits, also if it cannot run.

    Covers the first examples that the engine predicts within `max_seconds`. Without labels in the
    data, nothing is predicted. A transient failure raises TightropeError unless this is the last
    attempt.
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
        )
        fill_in(record, work, limits=execution.limits)
    record.write(target)


def predict(
    artifacts: Artifacts, *, max_sequence: int, max_seconds: float, threads: int
) -> dict[str, Any]:
    """Return, in the child, `labels`, `predictions`, `margins`, `logits` in the split's order.

    And `truncation`, that of all texts of the split. Only the first whole chunks where the engine
    is too slow for all examples in `max_seconds`.
    """
    began = time.monotonic()
    examples = read_split(artifacts.data)
    rows = load_encoder(artifacts.checkpoint, max_sequence=max_sequence)(examples)
    run, _ = load_engine(artifacts.engine, threads=threads)
    classes = classes_of(artifacts.checkpoint)
    size = largest_batch(read_manifest(artifacts.engine, EngineManifest)["options"])
    answered: list[Answer] = []
    with ProgressBar("predicting", len(rows)) as bar:
        done = 0.0

        def tell(count: float) -> None:
            nonlocal done
            done += count
            # a slow engine ends at the time limit
            bar.reach(max(done, len(rows) * (time.monotonic() - began) / max_seconds))

        for start in range(0, len(rows), CHUNK):
            if time.monotonic() - began > max_seconds and answered:
                break
            answered += answer_chunk(run, rows[start : start + CHUNK], size, classes, tell)
    return {
        "truncation": truncation_of(rows),
        "labels": [example["label"] for example in islice(examples, len(answered))],
        "predictions": [answer.prediction for answer in answered],
        "margins": [answer.margin for answer in answered],
        "logits": np.array([answer.logits for answer in answered], np.float32),
    }
