"""Encode the examples of a split as arrays, text or image, and fill the timed batches with them."""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, overload

import numpy as np

from tightrope.artifacts.manifest import read_manifest
from tightrope.artifacts.manifest_types import (
    CheckpointManifest,
    DataManifest,
    LabelsManifest,
    SplitManifest,
)
from tightrope.errors import ArtifactError, TightropeError
from tightrope.inputs.arrays import PIXELS, Arrays, stack
from tightrope.signature import IMAGE

Example = dict[str, Any]
SUFFIX = ".arrow"
# as many texts tell whether a tokenizer is that of the model; images are held at once
SOME, SOME_IMAGES = 4096, 128
COLUMNS = ("label", "image", "name")
Encoder = Callable[[Sequence[Example]], Sequence[Arrays]]
# examples whose tokens fill the timed batches
TIMING_EXAMPLES = 256


class ImageSplit(Sequence[Example]):
    """Examples {"label": int, "image": encoded bytes, "name": origin of the image}.

    The file is memory-mapped, so an example uses memory only while it is held. A slice is a list of
    examples.
    """

    def __init__(self, file: Path | str, rows: range | None = None) -> None:
        """Open an Arrow IPC file with the columns COLUMNS, as `ImageStore.write` writes it.

        With `rows`, the examples are those rows of the file, in that order.
        """
        import pyarrow

        with pyarrow.memory_map(str(file)) as stream:
            self._table = pyarrow.ipc.open_file(stream).read_all().select(COLUMNS)
        self._rows = range(self._table.num_rows) if rows is None else rows

    def __len__(self) -> int:
        """Return the number of images."""
        return len(self._rows)

    def labels(self) -> list[int]:
        """Return the label of each image, without reading the images."""
        labels = self._table.column("label").to_pylist()
        return [labels[row] for row in self._rows]

    @overload
    def __getitem__(self, index: int) -> Example: ...

    @overload
    def __getitem__(self, index: slice) -> list[Example]: ...

    def __getitem__(self, index: int | slice) -> Example | list[Example]:
        """Return an example, or a list of the examples of a slice."""
        if isinstance(index, slice):
            return [self[number] for number in range(*index.indices(len(self)))]
        example: Example = self._table.slice(self._rows[index], 1).to_pylist()[0]
        return example


def read_split(split: Path | str) -> Sequence[Example]:
    """Return the examples of the split with this manifest, in their order.

    Texts and seeds of random inputs are a list; images are an ImageSplit, read on access.
    """
    manifest = read_manifest(split, SplitManifest)
    require_split(split, manifest)
    try:
        rows = range(*manifest["rows"])
    except ValueError as error:
        raise ArtifactError(f"{split}: rows: {error}; delete it and run again") from error
    if manifest["file"] is None:
        return [{"random": seed} for seed in rows]
    file = Path(split).parent / manifest["file"]
    if file.suffix == SUFFIX:
        return ImageSplit(file, rows)
    lines = file.read_text().splitlines()
    if rows and not {rows[0], rows[-1]} <= set(range(len(lines))):
        raise ArtifactError(f"{split}: rows beyond those of {file}; delete it and run again")
    return [json.loads(lines[row]) for row in rows]


def some_examples(data: Path | str) -> Sequence[Example]:
    """Return the first texts or images of data.json or of a split; none of random inputs."""
    if "split" in read_manifest(data, LabelsManifest):
        rows = read_split(data)
        first = rows[: SOME_IMAGES if isinstance(rows, ImageSplit) else SOME]
        return [one for one in first if "random" not in one]
    found: list[Example] = []
    for part in read_manifest(data, DataManifest)["parts"].values():
        file = Path(data).parent / part["file"]
        if file.suffix == SUFFIX:
            return ImageSplit(file)[:SOME_IMAGES]
        with file.open() as lines:
            found += map(json.loads, islice(lines, SOME - len(found)))
    return found


def require_split(split: Path | str, manifest: SplitManifest) -> None:
    """Raise ArtifactError where a split lies in the place of another one."""
    if manifest["split"] != Path(split).stem:
        raise ArtifactError(
            f"{split}: the split {manifest['split']}, not {Path(split).stem}; delete it and run "
            "again"
        )


def load_encoder(checkpoint: Path | str, *, max_sequence: int) -> Encoder:
    """Return a function that encodes examples into a dict of arrays each, without padding.

    Texts become `input_ids` and `attention_mask`, int64 [sequence], see `text_encoder`; images
    become `pixel_values`, float32 [3, height, width], each decoded on access.
    """
    manifest = read_manifest(checkpoint, CheckpointManifest)
    # imports tokenizers, which images do not need
    if manifest["task"] != IMAGE:
        from tightrope.inputs.texts import text_encoder

        return text_encoder(Path(checkpoint), manifest, max_sequence=max_sequence)
    # imports Pillow, which texts do not need
    from tightrope.inputs.image_settings import load_settings
    from tightrope.inputs.images import EncodedImages

    settings = load_settings(Path(checkpoint).parent)
    return lambda examples: EncodedImages(examples, settings)


def timing_batches(
    checkpoint: Path | str, data: Path | str, shapes: list[dict[str, int]], *, max_sequence: int
) -> list[Arrays]:
    """Return a batch of examples of split `data` for each shape.

    Texts have no padding, except at a shape with `tokens`, see `filled_batch`.

    Raises TightropeError for a shape with more tokens than the model takes, or with another height
    and width.
    """
    from tightrope.inputs.texts import filled_batch

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
    # imports tokenizers
    from tightrope.inputs.texts import require_sequence

    for size in sizes:
        if "x" not in size:
            require_sequence(source, takes["max_sequence"], int(size), key="shapes: sequence")
        elif size != f"{takes['height']}x{takes['width']}":
            raise TightropeError(
                f"{source}: takes images of {takes['height']}x{takes['width']} pixels (height x "
                f"width), shapes has {size}; correct shapes"
            )
