"""Files are written whole or not at all, and read with an error that names them."""

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
    """Hex digest of the file's bytes; raises ArtifactError when it cannot be read."""
    try:
        with Path(path).open("rb") as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest()
    except OSError as error:
        raise ArtifactError(f"{path}: cannot be read ({error.strerror})") from error


def read_bytes(path: Path | str) -> bytes:
    """The content of the file; raises ArtifactError when it cannot be read."""
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise ArtifactError(f"{path}: cannot be read ({error.strerror})") from error


def digest(document: Any) -> str:
    """Twelve hex digits over `document` as sorted JSON."""
    return hashlib.sha256(json.dumps(document, sort_keys=True).encode()).hexdigest()[:12]


def write_bytes(path: Path | str, content: bytes) -> None:
    """Write the whole file, see `writing`."""
    with writing(path) as stream:
        stream.write(content)


@contextmanager
def writing(path: Path | str) -> Iterator[BinaryIO]:
    """Write through a temporary neighbour and a rename, so that no reader sees half a file."""
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
    """Turn a full disk or a folder without write permission into a StorageError naming `path`.

    Native libraries raise errors of their own kind that may not tell this reason: after one of
    those it is tried whether a file can be written into the folder `path` or beside the file.
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
    """Whether an error of permissions came from writing to `path`, not from reading elsewhere."""
    lacks_permission = error.errno in (errno.EACCES, errno.EPERM)
    return not lacks_permission or refusal_to_write(path) is not None


def cannot_be_written(path: Path | str, error: OSError) -> StorageError:
    """The error for a file or folder that the disk does not take."""
    return StorageError(
        f"{path}: cannot be written ({error.strerror}); free space there or mend its "
        "permissions, then run again"
    )


def refusal_to_write(path: Path) -> OSError | None:
    """Why no small file can be written into folder `path` or beside file `path`, else None."""
    folder = path if path.is_dir() else path.parent
    try:
        with tempfile.NamedTemporaryFile(dir=folder, prefix=".probe.") as stream:
            stream.write(bytes(PROBE_BYTES))
            stream.flush()
    except OSError as error:
        return error if error.errno in STORAGE_ERRORS else None
    return None


def write_json(path: Path | str, document: Any) -> None:
    """Write `document` as sorted JSON; not-a-number is refused."""
    text = json.dumps(document, indent=1, sort_keys=True, allow_nan=False, ensure_ascii=False)
    write_bytes(path, (text + "\n").encode())


def read_json(path: Path | str) -> Any:
    """The document in `path`; raises ArtifactError when it is missing or no whole JSON."""
    try:
        return json.loads(Path(path).read_text())
    except OSError as error:
        raise ArtifactError(f"{path}: cannot be read ({error.strerror})") from error
    except ValueError as error:
        raise ArtifactError(
            f"{path}: no valid JSON ({error}); it was cut off or edited: delete it and run again"
        ) from error
