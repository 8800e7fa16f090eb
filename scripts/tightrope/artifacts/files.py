"""Atomic writes, and reads whose errors name the file."""

import errno
import hashlib
import json
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

from tightrope.errors import ArtifactError, StorageError, TightropeError

DISK_ERRORS = {errno.ENOSPC, errno.EDQUOT, errno.EROFS}
STORAGE_ERRORS = {*DISK_ERRORS, errno.EACCES, errno.EPERM}
PROBE_BYTES = 2**20


def sha256(path: Path | str) -> str:
    """Return the hex digest of a file; raise ArtifactError when it cannot be read."""
    try:
        with Path(path).open("rb") as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest()
    except OSError as error:
        raise ArtifactError(f"{path}: cannot be read ({error.strerror})") from error


def read_bytes(path: Path | str) -> bytes:
    """Return the content of a file; raise ArtifactError when it cannot be read."""
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise ArtifactError(f"{path}: cannot be read ({error.strerror})") from error


def digest(document: Any) -> str:
    """Return twelve hex digits of the SHA-256 of `document` as sorted JSON."""
    return hashlib.sha256(json.dumps(document, sort_keys=True).encode()).hexdigest()[:12]


def write_bytes(path: Path | str, content: bytes) -> None:
    """Write a file atomically, see `writing`."""
    with writing(path) as stream:
        stream.write(content)


@contextmanager
def writing(path: Path | str) -> Iterator[BinaryIO]:
    """Write to a temporary file in the same folder and rename it, so that writes are atomic."""
    path = Path(path)
    temporary = path.with_name(f".{path.name}.{os.getpid()}.part")
    with storage_errors(path):
        try:
            temporary.parent.mkdir(parents=True, exist_ok=True)
            with temporary.open("wb") as stream:
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
        if error.errno not in STORAGE_ERRORS or not is_about_writing(error, Path(path)):
            raise
        raise cannot_be_written(error.filename or path, error) from error
    except Exception as error:
        refusal = refusal_to_write(Path(path))
        if refusal is None:
            raise
        raise cannot_be_written(path, refusal) from error


def is_about_writing(error: OSError, path: Path) -> bool:
    """Return whether a permission error came from writing to `path`, not from reading."""
    lacks_permission = error.errno in (errno.EACCES, errno.EPERM)
    return not lacks_permission or refusal_to_write(path) is not None


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


def write_json(path: Path | str, document: Any) -> None:
    """Write `document` as sorted JSON; raise ValueError for NaN or infinity."""
    text = json.dumps(document, indent=1, sort_keys=True, allow_nan=False, ensure_ascii=False)
    write_bytes(path, (text + "\n").encode())


def read_json(path: Path | str) -> Any:
    """Return the JSON document in `path`; raise ArtifactError when it is missing or invalid."""
    try:
        return json.loads(Path(path).read_text())
    except OSError as error:
        raise ArtifactError(f"{path}: cannot be read ({error.strerror})") from error
    except ValueError as error:
        raise ArtifactError(
            f"{path}: invalid JSON ({error}); it was truncated or edited: delete it and run again"
        ) from error
