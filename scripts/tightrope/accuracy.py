"""What a variant answers on the evaluation split, kept one by one."""

from pathlib import Path
from typing import Any

from tqdm import tqdm

from tightrope.files import read_json, sha256
from tightrope.host import describe_host
from tightrope.inputs import batches_by_length, load_encoder, read_split
from tightrope.loading import load_engine
from tightrope.manifest import read_manifest
from tightrope.outputs import answers
from tightrope.records import AccuracyRecord
from tightrope.supervise import Limits, fill_in

BATCH = 32


def measure_accuracy(
    engine: Path | str,
    checkpoint: Path | str,
    data: Path | str,
    target: Path | str,
    *,
    model: str,
    variant: str,
    max_sequence: int,
    threads: int,
    libraries: dict[str, str | None],
    limits: Limits,
) -> None:
    """Write the AccuracyRecord of `variant`, also when it cannot be run.

    Data without labels gives a record without predictions. A transient failure raises
    TightropeError unless this is the last attempt.
    """
    built, source = read_json(engine), read_manifest(data)
    record = AccuracyRecord(
        model=model,
        variant=variant,
        host=describe_host(),
        libraries=libraries,
        engine_sha256=sha256(engine),
        data_sha256=source["files"][source["splits"]["evaluation"]["file"]]["sha256"],
    )
    if built["status"] != "ok":
        record.status, record.reason = "failed", f"not built: {built['reason']}"
    elif source["labels"] is not None:
        work = (engine, checkpoint, data, max_sequence, threads)
        fill_in(record, predict, *work, limits=limits)
    record.write(target)


def predict(
    engine: Path | str,
    checkpoint: Path | str,
    data: Path | str,
    max_sequence: int,
    threads: int,
) -> dict[str, Any]:
    """Run in the child: `labels`, `predictions` and `margins` in the order of the split."""
    examples = read_split(data, "evaluation")
    rows = load_encoder(checkpoint, max_sequence=max_sequence)(examples)
    run, _ = load_engine(engine, threads=threads)
    classes = len(read_manifest(checkpoint)["labels"])
    predictions = [0] * len(rows)
    margins = [0.0] * len(rows)
    for indices, batch in tqdm(list(batches_by_length(rows, BATCH)), desc="predicting"):
        answered = answers(run(batch), batch, classes=classes)
        for index, (prediction, margin) in zip(indices, answered, strict=True):
            predictions[index], margins[index] = prediction, margin
    return {
        "labels": [example["label"] for example in examples],
        "predictions": predictions,
        "margins": margins,
    }
