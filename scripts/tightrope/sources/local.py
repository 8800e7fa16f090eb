"""What a source names on this machine: paths of a pattern, packages, and files to open."""

import gzip
import importlib.util
import io
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from importlib.metadata import packages_distributions
from itertools import islice, takewhile
from pathlib import Path
from typing import IO, BinaryIO

from tightrope.artifacts.files import open_regular
from tightrope.artifacts.provenance import library_version
from tightrope.errors import ConfigError, TightropeError

# a path with one of these characters is a pattern
MAGIC = set("*?[")
MOST_PATHS = 2_000_000
# limit of the unpacked size: a multiple of the packed size, but at least ALWAYS_ALLOWED
LARGEST_RATIO = 100
ALWAYS_ALLOWED = 2**30


def matching_paths(pattern: str) -> list[Path]:
    """Return the files and folders that `pattern` matches, sorted.

    Raises ConfigError for a pattern that would search the whole machine, one that matches more than
    MOST_PATHS, and one that is none.
    """
    path = home_expanded(pattern, pattern)
    try:
        if not MAGIC & set(pattern):
            return [path] if path.exists() else []
        parts = path.parts[1:] if path.anchor else path.parts
        if path.anchor and parts[:1] == ("**",):
            raise ConfigError(f"{pattern}: searches the whole machine; begin with a folder")
        found = Path(path.anchor).glob(str(path.relative_to(path.anchor)))
        paths = list(islice(found, MOST_PATHS + 1))
    except (OSError, ValueError, NotImplementedError, RecursionError) as error:
        reason = getattr(error, "strerror", None) or " ".join(str(error).split())
        raise ConfigError(f"{pattern[:200]}: no path that can be read ({reason})") from error
    if len(paths) > MOST_PATHS:
        raise ConfigError(f"{pattern}: matches more than {MOST_PATHS:,} paths; narrow the pattern")
    return sorted(paths)


def fixed_part(pattern: str) -> Path:
    """Return the path up to the first wildcard part of the pattern."""
    parts = home_expanded(pattern, pattern).parts
    return Path(*takewhile(lambda part: not MAGIC & set(part), parts))


def home_expanded(source: str, path: str) -> Path:
    """Return the path with `~` replaced; raise ConfigError naming `source` without such a home."""
    try:
        return Path(path).expanduser()
    except RuntimeError as error:
        raise ConfigError(f"{source}: there is no such home folder; write out the path") from error


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


@cache
def package_folder(source: str, name: str) -> Path:
    """Return the folder of installed package `name` (top-level); raise ConfigError if missing."""
    spec = importlib.util.find_spec(name) if name.isidentifier() else None
    if spec is None or not spec.submodule_search_locations:
        raise ConfigError(
            f"{source}: there is no installed package {name!r}; install it or choose another"
        )
    return Path(next(iter(spec.submodule_search_locations)))


@cache
def package_version(name: str) -> str | None:
    """Return the version of the distribution that holds the top-level package `name`."""
    owner = distribution_of(name)
    return library_version(owner) if owner else None


@cache
def distribution_of(name: str) -> str | None:
    """Return the distribution that holds the top-level package `name`, None if it is missing."""
    for one in (name, name.replace("_", "-")):
        if library_version(one) is not None:
            return one
    return min(packages_distributions().get(name, []), default=None)
