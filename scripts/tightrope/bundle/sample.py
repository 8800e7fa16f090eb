"""The examples that a bundle answers to prove itself, with the predictions on record."""

import io
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tightrope.inputs.encode import read_split
from tightrope.measure.accuracy import CHUNK
from tightrope.measure.answers import BATCH
from tightrope.records.accuracy import AccuracyRecord

FOLDER = "sample"
# the first ones of the split: the bundle computes them in the batches in which they were measured,
# as the int8-dynamic of PyTorch depends on what else is in a batch
TEXTS, IMAGES = CHUNK, BATCH


def sample_files(data: Path, record: AccuracyRecord) -> dict[str, bytes]:
    """Return sample.json, and of images their files; an empty list where nothing was predicted."""
    count = len(record.predictions)
    examples = read_split(data)[: min(count, TEXTS)] if count else []
    if examples and "image" in examples[0]:
        return image_files(examples[:IMAGES], record)
    entries = [{"text": one["text"], **on_record(record, i)} for i, one in enumerate(examples)]
    return {f"{FOLDER}/sample.json": lines_of(entries)}


def image_files(examples: Sequence[dict[str, Any]], record: AccuracyRecord) -> dict[str, bytes]:
    """Return the files of images as they are in the data, and sample.json."""
    names = [f"{FOLDER}/{i:03}.{suffix_of(one['image'])}" for i, one in enumerate(examples)]
    entries = [{"image": name, **on_record(record, i)} for i, name in enumerate(names)]
    images = dict(zip(names, (one["image"] for one in examples), strict=True))
    return {**images, f"{FOLDER}/sample.json": lines_of(entries)}


def suffix_of(image: bytes) -> str:
    """Return the suffix for an encoded image."""
    from PIL import Image

    return str(Image.open(io.BytesIO(image)).format).lower()


def on_record(record: AccuracyRecord, index: int) -> dict[str, Any]:
    """Return what an accuracy record says of one example."""
    assert record.labels is not None  # of what was predicted
    return {
        "index": index,
        "label": record.labels[index],
        "prediction": record.predictions[index],
        "margin": record.margins[index],
    }


def lines_of(entries: Sequence[dict[str, Any]]) -> bytes:
    """Return a list as JSON, an entry per line."""
    lines = ",\n".join(json.dumps(one, sort_keys=True) for one in entries)
    return f"[\n{lines}\n]\n".encode() if entries else b"[]\n"
