"""From examples to the arrays that an engine takes, text or image, and to batches of them."""

import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from tightrope.artifacts.manifest import read_manifest
from tightrope.errors import ArtifactError, TightropeError
from tightrope.inputs.image_split import SUFFIX, ImageSplit
from tightrope.inputs.texts import filled_batch, require_sequence, text_encoder
from tightrope.signature import BATCH, SEQUENCE, Signature
from tightrope.tasks import IMAGE

Arrays = dict[str, np.ndarray]
Example = dict[str, Any]
Encoder = Callable[[Sequence[Example]], Sequence[Arrays]]
# tokens of an example that is only traced or profiled
TOKENS = 8
# examples whose tokens fill the batches that are timed
TIMING_EXAMPLES = 256
PIXELS = "pixel_values"
# an image costs about as much memory as a text with a token for so many of its pixels
PIXELS_A_TOKEN = 64


def example_of(taken: Signature, batch: int, tokens: int = TOKENS) -> Arrays:
    """Inputs of ones to trace, compile or profile with; `tokens` where a sequence is free."""
    sizes = {BATCH: batch, SEQUENCE: tokens}
    shapes = taken.request(*(sizes[axis] for axis in taken.free))
    return {one.name: np.ones(shapes[one.name], one.dtype) for one in taken.inputs}


def read_split(data: Path | str, split: str) -> Sequence[Example]:
    """The examples of `split` (train, evaluation or calibration) beside manifest `data`.

    Texts and seeds of random inputs are a list, images an ImageSplit, read when asked for.
    """
    manifest = read_manifest(data)
    if split not in manifest["splits"]:
        raise ArtifactError(f"{data}: has no {split} split, only {', '.join(manifest['splits'])}")
    file = Path(data).parent / manifest["splits"][split]["file"]
    if file.suffix == SUFFIX:
        return ImageSplit(file)
    return [json.loads(line) for line in file.read_text().splitlines()]


def load_encoder(checkpoint: Path | str, *, max_sequence: int) -> Encoder:
    """A function from examples to one dict of arrays each, without padding.

    Texts become `input_ids` and `attention_mask`, int64 [sequence], see `text_encoder`; images
    `pixel_values`, float32 [3, height, width], each decoded when it is asked for.
    """
    manifest = read_manifest(checkpoint)
    if manifest["task"] != IMAGE:
        return text_encoder(Path(checkpoint), manifest, max_sequence=max_sequence)
    # of texts Pillow is not needed
    from tightrope.inputs.image_encoding import EncodedImages
    from tightrope.inputs.image_settings import load_settings

    settings = load_settings(Path(checkpoint).parent)
    return lambda examples: EncodedImages(examples, settings)


def stack(rows: Sequence[Arrays], *, sequence: int | None = None) -> Arrays:
    """One batch: images [batch, 3, height, width], or texts, int64 [batch, sequence].

    Texts are padded with zeros (masked) to the longest row. With `sequence` the batch has exactly
    that many tokens; a longer row is an error.
    """
    rows = list(rows)
    if PIXELS in rows[0]:
        return {PIXELS: np.stack([row[PIXELS] for row in rows])}
    longest = max(len(row["input_ids"]) for row in rows)
    if sequence is not None and longest > sequence:
        raise TightropeError(f"an example has {longest} tokens, the batch was to have {sequence}")
    width = sequence or longest
    return {
        name: np.stack([np.pad(row[name], (0, width - len(row[name]))) for row in rows])
        for name in rows[0]
    }


def length(row: Arrays) -> int:
    """The tokens of an encoded text; of an image those that it is worth in memory."""
    if PIXELS in row:
        return max(1, row[PIXELS][0].size // PIXELS_A_TOKEN)
    return len(row["input_ids"])


def batches_of_equal_length(rows: Sequence[Arrays], *, tokens: int) -> Iterator[Arrays]:
    """Batches of one length each, so that no padding is in them; of at most so many `tokens`.

    One row alone may have more. Images, which are all of one size, are decoded batch by batch.
    """
    if len(rows) and PIXELS in rows[0]:
        by_length = {length(rows[0]): rows}
    else:
        by_length = {}
        for row in rows:
            by_length.setdefault(length(row), []).append(row)
    for one, group in sorted(by_length.items()):
        size = max(1, tokens // one)
        for start in range(0, len(group), size):
            yield stack(group[start : start + size])


def batches_by_length(rows: Sequence[Arrays], size: int) -> Iterator[tuple[list[int], Arrays]]:
    """Indices and batch of neighbours in length, longest first, padded to the longest."""
    order: Sequence[int] = range(len(rows))
    if len(rows) and PIXELS not in rows[0]:
        order = sorted(order, key=lambda index: (-length(rows[index]), index))
    for start in range(0, len(order), size):
        indices = list(order[start : start + size])
        yield indices, stack([rows[index] for index in indices])


def timing_batches(
    checkpoint: Path | str, data: Path | str, shapes: list[dict[str, int]], *, max_sequence: int
) -> list[Arrays]:
    """A batch of real evaluation examples for each shape, texts without padding.

    Raises TightropeError for a shape of more tokens, or of another height and width, than the
    model takes.
    """
    manifest = read_manifest(checkpoint)
    images = manifest["task"] == IMAGE
    for shape in shapes:
        if images:
            require_size(manifest, shape)
        else:
            require_sequence(manifest, shape["sequence"], key="shapes: sequence")
    wanted = max(shape["batch"] for shape in shapes) if images else TIMING_EXAMPLES
    rows = load_encoder(checkpoint, max_sequence=max_sequence)(
        read_split(data, "evaluation")[:wanted]
    )
    if not images:
        return [filled_batch(list(rows), **shape) for shape in shapes]
    pixels = stack(rows)[PIXELS]
    return [{PIXELS: pixels[np.arange(shape["batch"]) % len(pixels)]} for shape in shapes]


def require_size(manifest: dict[str, Any], shape: dict[str, int]) -> None:
    """Raise TightropeError where the model of a checkpoint's manifest takes other images."""
    taken, asked = ((one["height"], one["width"]) for one in (manifest, shape))
    if taken != asked:
        raise TightropeError(
            f"{manifest['source']}: takes images of {taken[0]} x {taken[1]} pixels (height x "
            f"width), shapes has {asked[0]} x {asked[1]}; correct shapes"
        )
