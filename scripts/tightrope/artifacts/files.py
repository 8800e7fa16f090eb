"""Atomic writes, and reads of regular files whose errors name the file."""

import errno
import hashlib
import json
import os
import platform
import shutil
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from io import BufferedRandom, BufferedReader
from pathlib import Path
from typing import Any

from tightrope.errors import ArtifactError, StorageError, TightropeError

DISK_ERRORS = {errno.ENOSPC, errno.EDQUOT, errno.EROFS}
PERMISSION_ERRORS = {errno.EACCES, errno.EPERM}
STORAGE_ERRORS = DISK_ERRORS | PERMISSION_ERRORS
PROBE_BYTES = 2**20
# what compilers and runtimes quote, in small letters
WITHOUT_ROOM = "no space left on device"
# how the folders in TMPDIR begin in which jobs have their temporary files
SCRATCH = "tightrope."
# the largest file that is read into memory as a whole
LARGEST_BYTES = 2**32


def open_regular(path: Path | str) -> BufferedReader:
    """Open a regular file for reading.

    Raises ArtifactError for a folder, and for a pipe or device, which could block or never end.
    """
    try:
        stream = open(  # noqa: SIM115 the caller closes it; without waiting for a pipe's writer
            path, "rb", opener=lambda name, flags: os.open(name, flags | os.O_NONBLOCK)
        )
    except (OSError, ValueError) as error:
        raise cannot_be_read(path, error) from error
    if not stat.S_ISREG(os.fstat(stream.fileno()).st_mode):
        stream.close()
        raise ArtifactError(
            f"{path}: a pipe or device is not read, it may never end; replace it by a file"
        )
    return stream


def cannot_be_read(path: Path | str, error: Exception) -> ArtifactError:
    """Return the ArtifactError for a file that cannot be read."""
    return ArtifactError(f"{path}: cannot be read ({getattr(error, 'strerror', None) or error})")


def sha256(path: Path | str) -> str:
    """Return the hex digest of a regular file; raise ArtifactError when it cannot be read."""
    with open_regular(path) as stream:
        try:
            return hashlib.file_digest(stream, "sha256").hexdigest()
        except OSError as error:
            raise cannot_be_read(path, error) from error


def read_bytes(path: Path | str, largest: int = LARGEST_BYTES) -> bytes:
    """Return the content of a regular file of at most `largest` bytes; else raise ArtifactError."""
    with open_regular(path) as stream:
        size = os.fstat(stream.fileno()).st_size
        if size > largest:
            raise ArtifactError(f"{path}: {size} bytes, more than {largest} are not read")
        try:
            return stream.read(size)
        except OSError as error:
            raise cannot_be_read(path, error) from error


def copy_file(source: Path | str, target: Path | str) -> None:
    """Copy a regular file of any size atomically, see `writing`; raise as `open_regular` does."""
    with open_regular(source) as stream, writing(target) as copy:
        shutil.copyfileobj(stream, copy)


def digest(document: Any) -> str:
    """Return twelve hex digits of the SHA-256 of `document` as sorted JSON."""
    return hashlib.sha256(json.dumps(document, sort_keys=True).encode()).hexdigest()[:12]


def write_bytes(path: Path | str, content: bytes) -> None:
    """Write a file atomically, see `writing`."""
    with writing(path) as stream:
        stream.write(content)


@contextmanager
def writing(path: Path | str) -> Iterator[BufferedRandom]:
    """Write to a temporary file in the same folder and rename it, so that writes are atomic."""
    path = Path(path)
    temporary = path.with_name(f".{path.name}.{os.getpid()}.part")
    with storage_errors(path):
        try:
            temporary.parent.mkdir(parents=True, exist_ok=True)
            with temporary.open("w+b") as stream:
                yield stream
            temporary.replace(path)
        finally:
            temporary.unlink(missing_ok=True)


@contextmanager
def storage_errors(path: Path | str) -> Iterator[None]:
    """Turn a full disk or a missing write permission into a StorageError that names `path`.

    Native libraries raise their own errors, which may not state this reason. After such an error a
    probe file is written into folder `path`, or into the folder of file `path`.
    """
    try:
        yield
    except TightropeError:
        raise
    except OSError as error:
        reading = error.errno in PERMISSION_ERRORS and refusal_to_write(Path(path)) is None
        if error.errno not in STORAGE_ERRORS or reading:
            raise
        scratch = None if error.filename else full_disk()
        raise scratch or cannot_be_written(error.filename or path, error) from error
    except Exception as error:
        refusal = refusal_to_write(Path(path))
        if refusal is None:
            raise
        raise cannot_be_written(path, refusal) from error


def full_disk(error: BaseException | None = None) -> StorageError | None:
    """Return the StorageError of a job without room for the file of `error`, or temporary ones."""
    folder = Path(tempfile.gettempdir())
    if isinstance(error, OSError) and error.errno in DISK_ERRORS and error.filename:
        if not Path(error.filename).is_relative_to(folder):
            return cannot_be_written(error.filename, error)
    elif refusal_to_write(folder) is None and WITHOUT_ROOM not in str(error).casefold():
        return None
    disk = folder.parent if folder.name.startswith(SCRATCH) else folder
    return StorageError(
        f"{disk} on {platform.node()}: temporary files cannot be written; free space there, or set "
        "TMPDIR to a folder with more, and run again"
    )


def cannot_be_written(path: Path | str, error: OSError) -> StorageError:
    """Return the StorageError for a file or folder that cannot be written."""
    return StorageError(
        f"{path}: cannot be written ({error.strerror}); free space there or fix its "
        "permissions, then run again"
    )


def refusal_to_write(path: Path) -> OSError | None:
    """Return the error of writing a probe file into folder `path` or next to file `path`.

    None where the write succeeds or fails for a reason that is not in `STORAGE_ERRORS`.
    """
    folder = path if path.is_dir() else path.parent
    try:
        with tempfile.NamedTemporaryFile(dir=folder, prefix=".probe.") as stream:
            stream.write(bytes(PROBE_BYTES))
            stream.flush()
    except OSError as error:
        return error if error.errno in STORAGE_ERRORS else None
    return None


def file_state(path: Path | str) -> tuple[int, int] | None:
    """Return what another write of the file changes, whatever the clock says; None without it."""
    try:
        status = Path(path).stat()
    except OSError:
        return None
    return status.st_ino, status.st_mtime_ns


def write_json(path: Path | str, document: Any) -> None:
    """Write `document` as sorted JSON; raise ValueError for NaN or infinity."""
    write_bytes(path, json_bytes(document))


def json_bytes(document: Any) -> bytes:
    """Return `document` as sorted JSON; raise ValueError for NaN or infinity."""
    text = json.dumps(document, indent=1, sort_keys=True, allow_nan=False, ensure_ascii=False)
    return (text + "\n").encode()


def read_json(path: Path | str, kind: Any = Any) -> Any:
    """Return the JSON document in `path`, which must be of type `kind`, with all its fields.

    Raises ArtifactError when it is missing, no regular file, invalid (see `strict_json`) or of
    another type, naming the field.
    """
    return json_document(path, read_bytes(path), kind)


def json_document(path: Path | str, content: bytes, kind: Any = Any) -> Any:
    """Return the JSON document in `content`, that of file `path`; raises as `read_json` does."""
    try:
        document = strict_json(content)
    except ValueError as error:
        raise ArtifactError(
            f"{path}: invalid JSON ({error}); it was truncated or edited: delete it and run again"
        ) from error
    return require_type(path, document, kind)


def strict_json(content: bytes) -> Any:
    """Return the JSON document in `content`; raise ValueError with the reason where it is invalid.

    Invalid is also what Python's json lets pass: NaN and infinite numbers, a key that comes twice
    and half a surrogate pair. A document that is nested too deeply is refused.
    """
    import msgspec

    try:
        msgspec.json.decode(content)
        return json.loads(content, object_pairs_hook=with_distinct_keys)
    except RecursionError:
        raise ValueError("nested too deeply") from None
    except msgspec.DecodeError as error:
        raise ValueError(str(error)) from error


def with_distinct_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return a JSON object; raise ValueError where a key comes twice."""
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for number, name in enumerate(names) if name in names[:number])
        raise ValueError(f"the key {twice!r} comes twice")
    return found


def require_type(path: Path | str, document: Any, kind: Any) -> Any:
    """Return the document, of which a Struct is made where `kind` is one.

    Raises ArtifactError naming `path` and the field where it is not of that type of msgspec; fields
    that it does not name are allowed.
    """
    import msgspec

    try:
        found = msgspec.convert(document, kind)
        return found if isinstance(found, msgspec.Struct) else document
    except msgspec.ValidationError as error:
        raise ArtifactError(
            f"{path}: {error}; it was edited or is of another version: delete it and run again"
        ) from error
