"""Temporary on-disk store of checked images, between reading a source and writing splits."""

import hashlib
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import pyarrow

from tightrope.artifacts.files import storage_errors, writing
from tightrope.errors import TightropeError
from tightrope.inputs.images import decode_rgb

# limit of an image file, and approximate limit of a record batch
LARGEST_BYTES = 2**26
BATCH_ROWS = 512
SCHEMA = pyarrow.schema(
    [("label", pyarrow.int64()), ("image", pyarrow.binary()), ("name", pyarrow.string())]
)


class StoredImage(NamedTuple):
    """Name of an image's origin, digest of its pixels, and its offset and size in the store."""

    name: str
    digest: str
    offset: int
    size: int


@contextmanager
def image_store(folder: Path | str) -> "Iterator[ImageStore]":
    """Open a store in an unnamed file on the disk of `folder`; it is deleted with the process."""
    with storage_errors(folder):
        Path(folder).mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder) as stream:
            yield ImageStore(stream)


class ImageStore:
    """Encoded images in an open file; images with the same pixels are stored once."""

    def __init__(self, stream: BinaryIO) -> None:
        """Store images in `stream`."""
        self._stream = stream
        self._locations: dict[str, tuple[int, int]] = {}
        self._end = 0

    def add(self, name: str, image: bytes) -> StoredImage:
        """Decode the bytes of an image file and store them.

        Raises TightropeError with `name` for data that is no image, broken or too large.
        """
        check_size(name, len(image))
        rgb = decode_rgb(image, name=name)
        digest = hashlib.sha256(b"%d %d " % rgb.size + rgb.tobytes()).hexdigest()
        if digest not in self._locations:
            self._locations[digest] = (self._end, len(image))
            self._stream.seek(self._end)
            self._stream.write(image)
            self._end += len(image)
        return StoredImage(name, digest, *self._locations[digest])

    def write(self, file: Path, examples: Sequence[dict[str, Any]]) -> None:
        """Write {"label": int, "image": StoredImage} as an Arrow file, see `ImageSplit`."""
        with writing(file) as stream, pyarrow.ipc.new_file(stream, SCHEMA) as arrow:
            batch: list[dict[str, Any]] = []
            size = 0
            for number, example in enumerate(examples, start=1):
                stored = example["image"]
                self._stream.seek(stored.offset)
                image = self._stream.read(stored.size)
                batch.append({"label": example["label"], "image": image, "name": stored.name})
                size += stored.size
                # batches limit memory
                if size >= LARGEST_BYTES or len(batch) >= BATCH_ROWS or number == len(examples):
                    arrow.write_batch(pyarrow.RecordBatch.from_pylist(batch, schema=SCHEMA))
                    batch, size = [], 0


def check_size(name: str, size: int) -> None:
    """Raise TightropeError for a file that is too large for a single image."""
    if size > LARGEST_BYTES:
        raise TightropeError(
            f"{name}: {size} bytes, more than {LARGEST_BYTES} are not read as one image; save it "
            "smaller"
        )
