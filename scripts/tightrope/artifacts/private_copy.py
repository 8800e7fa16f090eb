"""A folder whose manifest is read and whose files are opened later: a copy that none can change.

Runtimes open files by path, seconds after they were verified: the file may be another one by then.
A hard link or an open descriptor still shows what is written into the file in place. So the bytes
that are hashed are the ones that are copied, in one read, to a folder that only this user can open.
"""

import hashlib
import os
from contextlib import suppress
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory
from typing import BinaryIO

from tightrope.artifacts.files import digest, write_json
from tightrope.artifacts.manifest import Kind, open_manifest, require_digest, require_size
from tightrope.artifacts.manifest_types import File
from tightrope.errors import ArtifactError, StorageError

BLOCK_BYTES = 2**20
# of such a size the kernel would write a file to the disk later, while the engine is timed
LARGE_BYTES = 2**24
# copies of this process by manifest and its content; forked children share those of their parent
COPIES: dict[tuple[Path, str], TemporaryDirectory[str]] = {}


def private_copy(path: Path | str, kind: type[Kind]) -> Path:
    """Return the path of manifest `path` in a verified copy of its folder.

    The copy holds the manifest and the files that it lists, no others. It is in the temporary
    folder, is made once per process, and deleted when the process ends. Raises ArtifactError as
    `read_manifest` does, and where the manifest lists a file outside its folder; StorageError
    where the temporary folder has no room or runs no code.
    """
    path = Path(path)
    manifest = open_manifest(path, kind)
    key = path.absolute(), digest(manifest)
    if key not in COPIES:
        COPIES[key] = TemporaryDirectory(prefix="tightrope.", ignore_cleanup_errors=True)
        try:
            fill(Path(COPIES[key].name), path, manifest["files"])
            write_json(Path(COPIES[key].name, path.name), manifest)
        except BaseException:
            COPIES.pop(key).cleanup()
            raise
    return Path(COPIES[key].name, path.name)


def fill(folder: Path, manifest: Path, files: dict[str, File]) -> None:
    """Copy the files of a manifest into `folder`; raises as `private_copy` does."""
    if any(name.endswith(".so") for name in files):
        require_code(folder)
    for name, expected in files.items():
        parts = PurePosixPath(name).parts
        if name.startswith("/") or ".." in parts or not parts:
            raise ArtifactError(
                f"{manifest}: lists {name!r}, which is not in its folder; delete "
                f"{manifest.parent} and run again"
            )
        target = folder.joinpath(*parts)
        target.parent.mkdir(parents=True, exist_ok=True)
        copy_verified(manifest.parent / name, target, expected, manifest)


def copy_verified(source: Path, target: Path, expected: File, manifest: Path) -> None:
    """Copy a file in one read; raise ArtifactError unless the copy is what the manifest lists."""
    require_size(source, expected, manifest)
    try:
        # not blocking: a FIFO may have taken the file's place since its size was read
        stream = os.fdopen(os.open(source, os.O_RDONLY | os.O_NONBLOCK), "rb", buffering=0)
    except OSError as error:
        raise ArtifactError(f"{source}: cannot be read ({error.strerror})") from error
    with stream, target.open("xb", buffering=0) as copy:
        found = copied(stream, copy, expected["size_bytes"], source)
        if expected["size_bytes"] >= LARGE_BYTES:
            os.fdatasync(copy.fileno())
    require_digest(found, source, expected, manifest)


def copied(stream: BinaryIO, copy: BinaryIO, size: int, source: Path) -> str:
    """Copy at most one byte more than `size`; return the hex digest of what was copied."""
    found, left = hashlib.sha256(), size + 1
    while left:
        try:
            block = stream.read(min(BLOCK_BYTES, left))
        except OSError as error:
            raise ArtifactError(f"{source}: cannot be read ({error.strerror})") from error
        if not block:
            break
        found.update(block)
        left -= len(block)
        write_whole(copy, block)
    return found.hexdigest()


def write_whole(copy: BinaryIO, block: bytes) -> None:
    """Write all of a block; raise StorageError with the remedy where there is no room."""
    view = memoryview(block)
    try:
        while view:
            view = view[copy.write(view) :]
    except OSError as error:
        raise StorageError(
            f"{copy.name}: an engine cannot be copied there to be loaded ({error.strerror}); free "
            "space there, or set TMPDIR to a folder with more"
        ) from error


def require_code(folder: Path) -> None:
    """Raise StorageError where libraries in `folder` cannot be loaded."""
    with suppress(OSError):
        if os.statvfs(folder).f_flag & os.ST_NOEXEC:
            raise StorageError(
                f"{folder}: is on a file system without execution (noexec), from which a compiled "
                "engine cannot be loaded; set TMPDIR to a folder of another one"
            )
