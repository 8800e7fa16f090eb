"""What a source names on this machine: paths of a pattern, packages, files, and archives.

The files in an archive are read one at a time, without unpacking to disk.
"""

import gzip
import importlib.util
import io
import stat
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache, partial
from importlib.metadata import packages_distributions
from itertools import islice, takewhile
from pathlib import Path, PurePosixPath
from typing import IO, Any, BinaryIO

from tightrope.artifacts.files import open_regular
from tightrope.artifacts.provenance import library_version
from tightrope.errors import ConfigError, TightropeError

# a path with one of these characters is a pattern
MAGIC = set("*?[")
MOST_PATHS = 2_000_000
# limit of the unpacked size: a multiple of the packed size, but at least ALWAYS_ALLOWED
LARGEST_RATIO = 100
ALWAYS_ALLOWED = 2**30
SUFFIXES = (".zip", ".tar", ".tar.gz", ".tgz")
# the largest file in an archive
LARGEST_FILE = 2**26
BLOCK = 512
PADDING = 2**20
BROKEN = (
    *(tarfile.TarError, zipfile.BadZipFile, zlib.error, EOFError, OSError, ValueError),
    *(NotImplementedError, RuntimeError),  # the latter for a zip file with a password
)
Reader = Callable[[], bytes]


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


def is_archive(file: Path) -> bool:
    """Whether the file name has the suffix of a supported archive."""
    return file.name.lower().endswith(SUFFIXES)


def read_archive(file: Path) -> Iterator[tuple[str, Reader | None]]:
    """Yield the path of each member with a function that reads it, None for a folder.

    Call the function before requesting the next member. Raises TightropeError that names archive
    and member for what is broken, too large, a duplicate, a link, a device or outside the archive.
    """
    seen: set[PurePosixPath] = set()
    total = 0
    with open_regular(file):
        allowed = allowed_bytes(file.stat().st_size)
    walk = zip_members if file.name.lower().endswith(".zip") else tar_members
    with archive_errors(file):
        for name, kind, size, read in walk(file):
            path = PurePosixPath(name)
            member = f"{file}/{path}"
            if path.is_absolute() or ".." in path.parts:
                raise TightropeError(f"{member}: a path that leads out of the archive is not read")
            if kind == "folder":
                yield str(path), None
                continue
            if kind != "file":
                raise TightropeError(f"{member}: links and devices in an archive are not read")
            if path in seen:
                raise TightropeError(f"{member}: is in the archive twice; pack it again")
            if size > LARGEST_FILE:
                raise TightropeError(f"{member}: {size} bytes; at most {LARGEST_FILE} are read")
            seen.add(path)
            total += size
            if total > allowed:
                raise TightropeError(f"{file}: unpacks to more than {allowed} bytes; unpack it")
            yield str(path), archive_errors(file)(read)


@contextmanager
def archive_errors(file: Path) -> Iterator[None]:
    """Turn errors of damaged archives into a TightropeError that names `file`."""
    try:
        yield
    except BROKEN as error:
        reason = " ".join(str(error).split()) or type(error).__name__
        raise TightropeError(f"{file}: cannot be read as an archive ({reason})") from error


def zip_members(file: Path) -> Iterator[tuple[str, str, int, Reader]]:
    """Yield name, kind (folder, file or other), bytes and reader of each zip member."""
    with zipfile.ZipFile(file) as archive:
        for info in archive.infolist():
            mode = stat.S_IFMT(info.external_attr >> 16)
            kind = "folder" if info.is_dir() else "file" if mode in (0, stat.S_IFREG) else "other"
            yield info.filename, kind, info.file_size, partial(archive.read, info)


def tar_members(file: Path) -> Iterator[tuple[str, str, int, Reader]]:
    """Yield the same for a tar file; a missing end-of-archive marker is an error."""
    with file.open("rb") as raw:
        plain = file.name.lower().endswith(".tar")
        bounded = BoundedReader(raw if plain else gzip.GzipFile(fileobj=raw), file)
        archive = tarfile.TarFile(fileobj=bounded)  # type: ignore[arg-type]  # only reads
        while (info := archive.next()) is not None:
            kind = "folder" if info.isdir() else "file" if info.isreg() else "other"

            def read(info: tarfile.TarInfo = info) -> bytes:
                member = archive.extractfile(info)
                return member.read() if member else b""

            yield info.name, kind, info.size, read
            # otherwise tarfile keeps every member in memory
            archive.members.clear()  # type: ignore[attr-defined]  # not in the stub
        # tarfile treats a damaged header as the end
        bounded.seek(archive.offset)
        if bounded.read(BLOCK) != bytes(BLOCK):
            raise tarfile.ReadError("it is cut off or damaged")
        # read the padding to the end, where gzip verifies its checksum
        bounded.read(PADDING)


class BoundedReader:
    """Stream that never reads more than LARGEST_FILE at once, even if a header says so."""

    def __init__(self, stream: BinaryIO | gzip.GzipFile, file: Path) -> None:
        """Wrap `stream`, the content of `file`."""
        self._stream: Any = stream
        self._file = file
        self.seek, self.tell = stream.seek, stream.tell

    def read(self, size: int) -> bytes:
        """Return the next bytes."""
        if size > LARGEST_FILE:
            raise TightropeError(f"{self._file}: a header of {size} bytes; pack it again")
        return bytes(self._stream.read(size))
