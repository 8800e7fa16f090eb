"""Timed batches: real examples that fill each measured shape."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

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
    images = manifest["task"] == IMAGE
    sides = ("height", "width") if images else ("sequence",)
    sizes = ["x".join(str(shape[side]) for side in sides) for shape in shapes]
    require_sizes(manifest["source"], manifest, sizes)
    count = max(shape["batch"] for shape in shapes) if images else TIMING_EXAMPLES
    rows = load_encoder(checkpoint, max_sequence=max_sequence)(read_split(data)[:count])
    if not images:
        return [filled_batch(list(rows), **shape) for shape in shapes]
    pixels = stack(rows)[PIXELS]
    return [{PIXELS: pixels[np.arange(shape["batch"]) % len(pixels)]} for shape in shapes]


def require_sizes(source: str, takes: Mapping[str, Any], sizes: Iterable[str]) -> None:
    """Raise TightropeError for a size of `shapes` that the model from `source` does not take.

    A size is a number of tokens, or `224x224`. `takes` has the model's `max_sequence`, None for no
    limit, or the `height` and `width` of its images.
    """
    for size in sizes:
        if "x" not in size:
            require_sequence(source, takes["max_sequence"], int(size), key="shapes: sequence")
        elif size != f"{takes['height']}x{takes['width']}":
            raise TightropeError(
                f"{source}: takes images of {takes['height']}x{takes['width']} pixels (height x "
                f"width), shapes has {size}; correct shapes"
            )
