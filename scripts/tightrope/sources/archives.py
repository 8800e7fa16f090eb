"""Read files in zip and tar archives one at a time, without unpacking to disk."""

import gzip
import stat
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import Any, BinaryIO

from tightrope.artifacts.files import open_regular
from tightrope.errors import TightropeError
from tightrope.sources.local import allowed_bytes

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

            def read(info: zipfile.ZipInfo = info) -> bytes:
                with archive.open(info) as stream:
                    return stream.read(LARGEST_FILE)

            yield info.filename, kind, info.file_size, read


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
