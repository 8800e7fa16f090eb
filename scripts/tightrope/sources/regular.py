"""Open local files of another's making: regular files only, and no more bytes than is sensible."""

import gzip
import io
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, BinaryIO

from tightrope.artifacts.files import open_regular
from tightrope.errors import TightropeError

# limit of the unpacked size: a multiple of the packed size, but at least ALWAYS_ALLOWED
LARGEST_RATIO = 100
ALWAYS_ALLOWED = 2**30


def allowed_bytes(packed: int) -> int:
    """Return how many bytes a packed file of that size may unpack to."""
    return max(ALWAYS_ALLOWED, LARGEST_RATIO * packed)


@contextmanager
def opened(file: Path, *, text: bool) -> Iterator[IO[bytes]]:
    """Open a regular file, unpacked where its name ends in .gz.

    Raises TightropeError for a pipe or a device, where it unpacks to more than `allowed_bytes`, and
    where what should be `text` has a NUL, as UTF-16 and binary files have.
    """
    with open_regular(file) as raw:
        size = file.stat().st_size
        if file.suffix == ".gz":
            with gzip.GzipFile(fileobj=raw) as unpacked:
                yield io.BufferedReader(Limited(unpacked, file, allowed_bytes(size), text=text))
        elif text:
            yield io.BufferedReader(Limited(raw, file, size, text=True))
        else:
            yield raw


class Limited(io.RawIOBase):
    """A stream that raises TightropeError once more than `allowed` bytes were read, or a NUL."""

    def __init__(
        self, stream: BinaryIO | gzip.GzipFile, file: Path, allowed: int, *, text: bool
    ) -> None:
        """Wrap `stream`, the content of `file`, in which a NUL is an error if it is `text`."""
        self._stream, self._file, self._text = stream, file, text
        self._allowed = self._left = allowed

    def readable(self) -> bool:
        """Return True."""
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]  # one kind of buffer
        """Fill the buffer, as far as there is more; return how many bytes were read."""
        content = self._stream.read(len(buffer))
        self._left -= len(content)
        if self._left < 0:
            raise TightropeError(
                f"{self._file}: unpacks to more than {self._allowed} bytes; unpack it"
            )
        if self._text and b"\0" in content:
            raise TightropeError(f"{self._file}: has a NUL, so it is no text; save it as UTF-8")
        buffer[: len(content)] = content
        return len(content)
