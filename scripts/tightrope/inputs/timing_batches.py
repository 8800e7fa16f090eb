"""Timed batches: real examples that fill each measured shape."""

from pathlib import Path

import numpy as np

from tightrope.artifacts.manifest import read_manifest
from tightrope.artifacts.manifest_types import CheckpointManifest
from tightrope.errors import TightropeError
from tightrope.inputs.arrays import PIXELS, Arrays, stack
from tightrope.inputs.encode import load_encoder, read_split
from tightrope.inputs.texts import filled_batch, require_sequence
from tightrope.signature import IMAGE

# examples whose tokens fill the timed batches
TIMING_EXAMPLES = 256


def timing_batches(
    checkpoint: Path | str, data: Path | str, shapes: list[dict[str, int]], *, max_sequence: int
) -> list[Arrays]:
    """Return a batch of examples of split `data` for each shape.

    Texts have no padding, except at a shape with `tokens`, see `filled_batch`.

    Raises TightropeError for a shape with more tokens than the model takes, or with another height
    and width.
    """
    manifest = read_manifest(checkpoint, CheckpointManifest)
    images, token_limit = manifest["task"] == IMAGE, manifest["max_sequence"]
    for shape in shapes:
        if images:
            require_size(manifest, shape)
        else:
            require_sequence(
                manifest["source"], token_limit, shape["sequence"], key="shapes: sequence"
            )
    count = max(shape["batch"] for shape in shapes) if images else TIMING_EXAMPLES
    rows = load_encoder(checkpoint, max_sequence=max_sequence)(read_split(data)[:count])
    if not images:
        return [filled_batch(list(rows), **shape) for shape in shapes]
    pixels = stack(rows)[PIXELS]
    return [{PIXELS: pixels[np.arange(shape["batch"]) % len(pixels)]} for shape in shapes]


def require_size(manifest: CheckpointManifest, shape: dict[str, int]) -> None:
    """Raise TightropeError if the model of a checkpoint's manifest takes another image size."""
    expected = manifest["height"], manifest["width"]
    requested = shape["height"], shape["width"]
    if expected != requested:
        raise TightropeError(
            f"{manifest['source']}: takes images of {expected[0]} x {expected[1]} pixels (height x "
            f"width), shapes has {requested[0]} x {requested[1]}; correct shapes"
        )
