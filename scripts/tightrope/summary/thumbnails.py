"""Small pictures of the images whose predictions changed, for the report."""

import base64
import io
from collections.abc import Iterable, Sequence
from itertools import chain, zip_longest

from tightrope.errors import TightropeError
from tightrope.inputs.encode import Example
from tightrope.summary.result_types import Result

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
