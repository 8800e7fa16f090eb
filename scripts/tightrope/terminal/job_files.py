"""The files of jobs that Snakemake tells of, which may be in its storage."""

import tempfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

# what Snakemake puts after the name of a file in storage
IN_STORAGE = " (send to storage)"
# the largest log that is fetched, in bytes: others may write in storage too
LARGEST_LOG = 2**26
# where the file is that Snakemake calls so, fetched where it has at most so many bytes
Files = Callable[[str, int], AbstractContextManager[Path]]


def name_of(file: str) -> str:
    """Return the name of a file that Snakemake tells of."""
    return file.removesuffix(IN_STORAGE)


def read_log(log: str, files: Files) -> str | None:
    """Return the text of a log, None where it cannot be read."""
    with files(log, LARGEST_LOG) as path:
        try:
            return path.read_text(errors="replace")
        except OSError:
            return None


@contextmanager
def here(file: str, largest: int) -> Iterator[Path]:
    """Yield where a file is that is not in storage."""
    yield Path(file)


def files_of(workflow: Any) -> Files:
    """Return what gives the files of the jobs of a workflow."""
    if workflow.storage_settings.default_storage_provider is None:
        return here
    return partial(fetched, workflow.storage_registry.default_storage_provider)


@contextmanager
def fetched(provider: Any, file: str, largest: int) -> Iterator[Path]:
    """Yield where a file is, fetched from storage for as long as it is used."""
    if not file.endswith(IN_STORAGE):
        yield Path(file)
        return
    copy = Path(provider.object(name_of(file)).local_path())
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        yield newer_of(copy, provider.object(name_of(file)), Path(folder, copy.name), largest)


def newer_of(copy: Path, stored: Any, target: Path, largest: int) -> Path:
    """Return the newer of a local copy and an object in storage, which is fetched to `target`.

    Of a job that ended here only the copy is of its last attempt. There is no file at the path
    where the object is larger than `largest` bytes, or where there is neither. A storage that does
    not answer has no objects.
    """
    try:
        stored.set_local_path(target)
        if stored.exists() and not is_newer(copy, stored.mtime()):
            if stored.size() <= largest:
                stored.retrieve_object()
            return target
    except Exception:  # of any storage; it must not hide how a job ended
        pass
    return copy


def is_newer(file: Path, time: float) -> bool:
    """Return whether a file was written after a time, in seconds since 1970."""
    return file.is_file() and file.stat().st_mtime > time
