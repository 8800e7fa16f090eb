"""Encode the examples of a split as arrays, text or image."""

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from tightrope.artifacts.manifest import read_manifest
from tightrope.artifacts.manifest_types import CheckpointManifest, SplitManifest
from tightrope.inputs.arrays import Arrays
from tightrope.inputs.image_split import SUFFIX, ImageSplit
from tightrope.inputs.texts import text_encoder
from tightrope.signature import IMAGE

Example = dict[str, Any]
Encoder = Callable[[Sequence[Example]], Sequence[Arrays]]


def read_split(split: Path | str) -> Sequence[Example]:
    """Return the examples of the split with this manifest, in their order.

    Texts and seeds of random inputs are a list; images are an ImageSplit, read on access.
    """
    manifest = read_manifest(split, SplitManifest)
    rows = range(*manifest["rows"])
    if manifest["file"] is None:
        return [{"random": seed} for seed in rows]
    file = Path(split).parent / manifest["file"]
    if file.suffix == SUFFIX:
        return ImageSplit(file, rows)
    lines = file.read_text().splitlines()
    return [json.loads(lines[row]) for row in rows]


def load_encoder(checkpoint: Path | str, *, max_sequence: int) -> Encoder:
    """Return a function that encodes examples into a dict of arrays each, without padding.

    Texts become `input_ids` and `attention_mask`, int64 [sequence], see `text_encoder`; images
    become `pixel_values`, float32 [3, height, width], each decoded on access.
    """
    manifest = read_manifest(checkpoint, CheckpointManifest)
    if manifest["task"] != IMAGE:
        return text_encoder(Path(checkpoint), manifest, max_sequence=max_sequence)
    # imports Pillow, which texts do not need
    from tightrope.inputs.image_settings import load_settings
    from tightrope.inputs.images import EncodedImages

    settings = load_settings(Path(checkpoint).parent)
    return lambda examples: EncodedImages(examples, settings)
