"""Files are written whole or not at all, and read with an error that names them."""

import errno
import hashlib
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tightrope.errors import ArtifactError, StorageError

STORAGE_ERRORS = {errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES, errno.EPERM}


def sha256(path: Path | str) -> str:
    """Hex digest of the file's bytes; raises ArtifactError when it cannot be read."""
    try:
        with Path(path).open("rb") as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest()
    except OSError as error:
        raise ArtifactError(f"{path}: cannot be read ({error.strerror})") from error


def write_bytes(path: Path | str, content: bytes) -> None:
    """Write through a temporary neighbour and a rename, so that no reader sees half a file."""
    path = Path(path)
    temporary = path.with_name(f".{path.name}.{os.getpid()}.part")
    with storage_errors(path):
        try:
            temporary.parent.mkdir(parents=True, exist_ok=True)
            temporary.write_bytes(content)
            temporary.replace(path)
        finally:
            temporary.unlink(missing_ok=True)


@contextmanager
def storage_errors(path: Path | str) -> Iterator[None]:
    """Turn a full disk or a folder without write permission into a StorageError naming `path`."""
    try:
        yield
    except OSError as error:
        if error.errno not in STORAGE_ERRORS:
            raise
        place = error.filename or path
        raise StorageError(
            f"{place}: cannot be written ({error.strerror}); free space there or mend its "
            "permissions, then run again"
        ) from error


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
