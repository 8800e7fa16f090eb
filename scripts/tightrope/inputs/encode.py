"""Encode the examples of a split as arrays, text or image."""

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from tightrope.artifacts.manifest import read_manifest
from tightrope.artifacts.manifest_types import CheckpointManifest, DataManifest
from tightrope.errors import ArtifactError
from tightrope.inputs.arrays import Arrays
from tightrope.inputs.image_split import SUFFIX, ImageSplit
from tightrope.inputs.texts import text_encoder
from tightrope.signature import IMAGE

Example = dict[str, Any]
Encoder = Callable[[Sequence[Example]], Sequence[Arrays]]


def read_split(data: Path | str, split: str) -> Sequence[Example]:
    """Return the examples of `split` (train, evaluation or calibration) next to manifest `data`.

    Texts and seeds of random inputs are a list; images are an ImageSplit, read on access.
    """
    manifest = read_manifest(data, DataManifest)
    if split not in manifest["splits"]:
        raise ArtifactError(f"{data}: has no {split} split, only {', '.join(manifest['splits'])}")
    file = Path(data).parent / manifest["splits"][split]["file"]
    if file.suffix == SUFFIX:
        return ImageSplit(file)
    return [json.loads(line) for line in file.read_text().splitlines()]


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
