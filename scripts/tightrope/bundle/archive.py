"""A folder as a .tar.gz whose bytes depend on its files alone."""

import gzip
import hashlib
import io
import tarfile
from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath

from tightrope.artifacts.files import open_regular, writing

SUMS = "SHA256SUMS"
# of an engine's weights a higher level saves a hundredth, and takes three times as long
LEVEL = 6

Files = Mapping[str, bytes | Path]


def write_archive(target: Path | str, folder: str, files: Files) -> None:
    """Write `files`, by their paths in `folder`, and last SHA256SUMS for `sha256sum --check`.

    Names, order, times and owners are fixed: the same files give the same bytes. Raises
    ArtifactError for a file that cannot be read.
    """
    with (
        writing(target) as stream,
        gzip.GzipFile("", "wb", LEVEL, stream, mtime=0) as packed,
        tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as archive,
    ):
        sums = "".join(add_all(archive, folder, files))
        add(archive, f"{folder}/{SUMS}", sums.encode())


def add_all(archive: tarfile.TarFile, folder: str, files: Files) -> Iterator[str]:
    """Add the files in the order of their names; yield the line of each for SHA256SUMS."""
    for name in sorted(files):
        assert not PurePosixPath(name).is_absolute() and ".." not in PurePosixPath(name).parts
        yield f"{add(archive, f'{folder}/{name}', files[name])}  {name}\n"


def add(archive: tarfile.TarFile, name: str, content: bytes | Path) -> str:
    """Add one file; return its SHA-256."""
    entry = tarfile.TarInfo(name)
    entry.mode = 0o644
    if isinstance(content, bytes):
        entry.size = len(content)
        archive.addfile(entry, io.BytesIO(content))
        return hashlib.sha256(content).hexdigest()
    with open_regular(content) as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
        entry.size = file.tell()
        file.seek(0)
        archive.addfile(entry, file)
    return digest
