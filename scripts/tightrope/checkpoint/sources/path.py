"""Checkpoints in local folders."""

from pathlib import Path

from tightrope.checkpoint.source import Source
from tightrope.checkpoint.sources.folder import check_folder, copy, files_in, positions_in
from tightrope.errors import ConfigError

check = check_folder


def local_files(source: Source) -> list[Path]:
    """Return the files that are copied from the folder."""
    return files_in(source.text, folder_of(source))


def libraries(_source: Source) -> dict[str, str | None]:
    """Return nothing: the files themselves are inputs of the job."""
    return {}


def longest_sequence(source: Source) -> int | None:
    """Return the model's token limit."""
    return positions_in(source.text, folder_of(source))


def fetch(source: Source, folder: Path) -> None:
    """Copy the checkpoint into `folder`."""
    copy(local_files(source), folder)


def folder_of(source: Source) -> Path:
    """Return the configured folder; raise ConfigError if it does not exist."""
    folder = Path(source.location).expanduser()
    if not folder.is_dir():
        raise ConfigError(f"{source.text}: there is no such folder")
    return folder
