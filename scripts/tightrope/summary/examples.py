"""Thumbnails of the examples whose prediction flipped, and the chance of each model."""

import base64
import io
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain, zip_longest
from pathlib import Path

from tightrope.errors import TightropeError
from tightrope.inputs.encode import Example, read_split
from tightrope.records.accuracy import AccuracyRecord
from tightrope.signature import IMAGE
from tightrope.summary.accuracy import chance_of
from tightrope.summary.document import Summary
from tightrope.summary.models import SplitsByModel
from tightrope.summary.recommend import of_models
from tightrope.summary.result_types import Model, Result

MOST = 40
SIDE = 72  # pixels: noise of this size is 6 kB, a photograph 2 or 3
QUALITY = 75


def thumbnails(split: Sequence[Example], indices: Iterable[int]) -> dict[str, str]:
    """Return data URIs of these images of a split, by index.

    Images that cannot be decoded are left out.
    """
    examples = {index: split[index] for index in indices}
    pictures = {
        str(index): thumbnail(example["image"], example["name"])
        for index, example in examples.items()
        if "image" in example
    }
    return {index: picture for index, picture in pictures.items() if picture}


def flipped_indices(results: Iterable[Result]) -> list[int]:
    """Return at most MOST examples to show: the first flipped ones of each result in turn.

    Those of records made on another split are left out.
    """
    lists: list[Sequence[int]] = [
        [example["index"] for example in accuracy["flipped"] or () if example["text"] is not None]
        for result in results
        if (accuracy := result["accuracy"])
    ]
    turns = chain.from_iterable(zip_longest(*lists))
    return list(dict.fromkeys(index for index in turns if index is not None))[:MOST]


def thumbnail(image: bytes, name: str) -> str | None:
    """Return an encoded image as a small JPEG in a data URI, None if it cannot be decoded."""
    # imports Pillow, which texts do not need
    from tightrope.inputs.images import decode_rgb

    try:
        picture = decode_rgb(image, name=name)
    except TightropeError:
        return None
    picture.thumbnail((SIDE, SIDE))
    stream = io.BytesIO()
    picture.save(stream, "JPEG", quality=QUALITY)
    return f"data:image/jpeg;base64,{base64.b64encode(stream.getvalue()).decode()}"


def with_examples(
    summary: Summary, judged: Mapping[tuple[str, str], AccuracyRecord], splits: SplitsByModel
) -> Summary:
    """Return a summary whose models have their chance accuracy and thumbnails.

    `judged` holds the accuracy records by (model, variant), `splits` the manifests of the splits.
    """
    results = of_models(summary["results"])
    models: dict[str, Model] = {
        name: {
            **model,
            "chance": chance_of(name, judged),
            "thumbnails": thumbnails_of(model, results.get(name, []), splits[name]["evaluation"]),
        }
        for name, model in summary["models"].items()
    }
    return {**summary, "models": models}


def thumbnails_of(model: Model, results: Iterable[Result], split: Path | str) -> dict[str, str]:
    """Return the thumbnails of a model of images, for texts none."""
    indices = flipped_indices(results) if model["task"] == IMAGE else []
    return thumbnails(read_split(split), indices) if indices else {}
