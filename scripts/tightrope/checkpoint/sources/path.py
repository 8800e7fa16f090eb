"""Checkpoints in local folders."""

from pathlib import Path
from typing import Any

from tightrope.checkpoint.folder import (
    PICKLES,
    check_folder,
    config_in,
    copy,
    files_in,
    no_libraries,
    pickled,
)
from tightrope.checkpoint.source import Source
from tightrope.errors import ConfigError
from tightrope.sources.local import home_expanded

check, libraries = check_folder, no_libraries


def local_files(source: Source) -> list[Path]:
    """Return the files that are copied from the folder."""
    return files_in(source.text, folder_of(source))


def config_json(source: Source) -> dict[str, Any]:
    """Return the model's config.json."""
    return config_in(source.text, folder_of(source))


def fetch(source: Source, folder: Path) -> None:
    """Copy the checkpoint into `folder`."""
    copy(source.text, local_files(source), folder)


def folder_of(source: Source) -> Path:
    """Return the configured folder; raise ConfigError if it does not exist."""
    folder = home_expanded(source.text, source.location)
    if folder.is_file() and folder.suffix in PICKLES:
        raise pickled(f"{source.text}: is a file of pickled weights")
    if folder.is_file():
        raise ConfigError(f"{source.text}: is a file; name the folder of the checkpoint")
    if not folder.is_dir():
        raise ConfigError(f"{source.text}: there is no such folder")
    return folder
