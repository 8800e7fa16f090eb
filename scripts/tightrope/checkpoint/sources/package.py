"""Checkpoints in installed packages, which are not imported."""

from pathlib import Path

from tightrope.checkpoint.source import Source
from tightrope.checkpoint.sources.folder import check_folder, copy, files_in, positions_in
from tightrope.errors import ConfigError
from tightrope.sources.packages import package_folder, package_version

check = check_folder


def local_files(source: Source) -> list[Path]:
    """None: its version stands for them. Raises ConfigError where one is missing."""
    files_in(source.text, folder_of(source))
    return []


def libraries(source: Source) -> dict[str, str | None]:
    """The version of the package."""
    name = source.place.partition("/")[0]
    return {name: package_version(name)}


def longest_sequence(source: Source) -> int | None:
    """Most tokens that the model takes."""
    return positions_in(source.text, folder_of(source))


def fetch(source: Source, folder: Path) -> None:
    """Copy the checkpoint into `folder`."""
    copy(files_in(source.text, folder_of(source)), folder)


def folder_of(source: Source) -> Path:
    """The folder in the package; raises ConfigError where either does not exist."""
    name, _, inner = source.place.partition("/")
    folder = package_folder(source.text, name) / inner
    if not folder.is_dir():
        raise ConfigError(f"{source.text}: package {name} has no folder {inner!r}")
    return folder
