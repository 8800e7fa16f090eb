"""A folder of temporary files (TMPDIR) without room: one line, in place of what a library says.

It is a matter of the machine, not of the variant whose job met it.
"""

import errno
import os
import platform
import tempfile
from pathlib import Path

from tightrope.artifacts.files import (
    DISK_ERRORS,
    cannot_be_written,
    is_about_scratch,
    refusal_to_write,
)
from tightrope.errors import StorageError, WorkFailed

# of the folders of this project in TMPDIR
PREFIX = "tightrope."
# what compilers and runtimes quote, in small letters
WITHOUT_ROOM = ("no space left on device", "disk quota exceeded")


def storage_error_of(error: Exception) -> StorageError | None:
    """Return the StorageError that an error of a job is; None if it is another error."""
    scratch = Path(tempfile.gettempdir())
    if isinstance(error, OSError) and error.errno in DISK_ERRORS:
        named = error.filename is not None and is_in(Path(str(error.filename)), scratch)
        if named or is_about_scratch(error, Path.cwd()):
            return scratch_cannot_be_written(scratch, error)
        return cannot_be_written(error.filename or "a file of this job", error)
    refusal = None if isinstance(error, WorkFailed) else refusal_to_write(scratch)
    if refusal is None and not any(words in str(error).casefold() for words in WITHOUT_ROOM):
        return None
    return scratch_cannot_be_written(scratch, refusal or OSError(errno.ENOSPC, "no space left"))


def no_room(scratch: Path | str) -> StorageError | None:
    """Return the StorageError of a folder of temporary files that takes no more, None with room."""
    refusal = refusal_to_write(Path(scratch))
    return None if refusal is None else scratch_cannot_be_written(Path(scratch), refusal)


def is_in(path: Path, folder: Path) -> bool:
    """Return whether the path is below the folder, and no file of the working directory."""
    path = path.absolute()
    return path.is_relative_to(folder.absolute()) and not path.is_relative_to(Path.cwd())


def scratch_cannot_be_written(scratch: Path, error: OSError) -> StorageError:
    """Return the StorageError for the folder that holds `scratch`, or is it, on this machine."""
    folder = scratch.parent if scratch.name.startswith(PREFIX) else scratch
    return StorageError(
        f"{folder} on {platform.node()}: temporary files cannot be written "
        f"({error.strerror or os.strerror(error.errno or 0)}); free space there, or set TMPDIR to "
        "a folder with more, and run again"
    )
