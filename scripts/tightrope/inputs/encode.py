"""Encode the examples of a split as arrays, text or image."""

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from tightrope.artifacts.files import require_type
from tightrope.artifacts.manifest import read_manifest
from tightrope.artifacts.manifest_types import CheckpointManifest, SplitManifest
from tightrope.errors import ArtifactError
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
    require_split(split, manifest)
    rows = rows_in(split, manifest)
    if manifest["file"] is None:
        return [{"random": seed} for seed in rows]
    file = Path(split).parent / manifest["file"]
    if file.suffix == SUFFIX:
        return ImageSplit(file, rows)
    lines = file.read_text().splitlines()
    if rows and not {rows[0], rows[-1]} <= set(range(len(lines))):
        raise ArtifactError(f"{split}: rows beyond those of {file}; delete it and run again")
    return [json.loads(lines[row]) for row in rows]


def require_split(split: Path | str, manifest: SplitManifest) -> None:
    """Raise ArtifactError where a split lies in the place of another one."""
    if manifest["split"] != Path(split).stem:
        raise ArtifactError(
            f"{split}: the split {manifest['split']}, not {Path(split).stem}; delete it and run "
            "again"
        )


def rows_in(split: Path | str, manifest: SplitManifest) -> range:
    """Return the rows of a split; raise ArtifactError where the manifest has none of its form."""
    require_type(split, manifest["rows"], tuple[int, int, int])
    try:
        return range(*manifest["rows"])
    except ValueError as error:
        raise ArtifactError(f"{split}: rows: {error}; delete it and run again") from error


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
