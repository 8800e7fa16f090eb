"""Checkpoints in installed packages, without importing the packages."""

from pathlib import Path

from tightrope.checkpoint.source import Source
from tightrope.checkpoint.sources.folder import check_folder, copy, files_in, positions_in
from tightrope.errors import ConfigError
from tightrope.sources.packages import package_folder, package_version

check = check_folder


def local_files(source: Source) -> list[Path]:
    """Return no files: the package version identifies them. Raise ConfigError if one is missing."""
    files_in(source.text, folder_of(source))
    return []


def libraries(source: Source) -> dict[str, str | None]:
    """Return the version of the package."""
    name = source.location.partition("/")[0]
    return {name: package_version(name)}


def longest_sequence(source: Source) -> int | None:
    """Return the model's token limit."""
    return positions_in(source.text, folder_of(source))


def fetch(source: Source, folder: Path) -> None:
    """Copy the checkpoint into `folder`."""
    copy(files_in(source.text, folder_of(source)), folder)


def folder_of(source: Source) -> Path:
    """Return the folder in the package; raise ConfigError if package or folder is missing."""
    name, _, inner = source.location.partition("/")
    folder = package_folder(source.text, name) / inner
    if not folder.is_dir():
        raise ConfigError(f"{source.text}: package {name} has no folder {inner!r}")
    return folder
