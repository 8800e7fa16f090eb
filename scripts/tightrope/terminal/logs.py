"""The logs of jobs that Snakemake tells of, which may be in its storage."""

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

# what Snakemake puts after the name of a file in storage
IN_STORAGE = " (send to storage)"
# the largest log that is fetched, in bytes: others may write in storage too
LARGEST = 2**26
LogReader = Callable[[str], str | None]


def name_of(log: str) -> str:
    """Return the name of a log that Snakemake tells of."""
    return log.removesuffix(IN_STORAGE)


def read_log(log: Path | str) -> str | None:
    """Return the text of a log that is here, None where it cannot be read."""
    try:
        return Path(log).read_text(errors="replace")
    except OSError:
        return None


def log_reader(workflow: Any) -> LogReader:
    """Return what reads the logs of a workflow by the names that Snakemake tells."""
    if workflow.storage_settings.default_storage_provider is None:
        return read_log

    def read(log: str) -> str | None:
        if not log.endswith(IN_STORAGE):
            return read_log(log)
        return read_stored(workflow.storage_registry.default_storage_provider, name_of(log))

    return read


def read_stored(provider: Any, query: str) -> str | None:
    """Return the text of the newer of a log in storage and its local copy, None without either.

    Of a job that ended here only the copy is of its last attempt. A storage that does not answer
    has no log.
    """
    copy = provider.object(query).local_path()
    try:
        with tempfile.TemporaryDirectory() as folder:
            stored, fetched = provider.object(query), Path(folder, "job.log")
            stored.set_local_path(fetched)
            if stored.exists() and not is_newer(copy, stored.mtime()):
                if stored.size() > LARGEST:
                    return None
                stored.retrieve_object()
                return read_log(fetched)
    except Exception:  # of any storage; it must not hide that a job ended
        pass
    return read_log(copy)


def is_newer(file: Path, time: float) -> bool:
    """Return whether a file was written after a time, in seconds since 1970."""
    return file.is_file() and file.stat().st_mtime > time
