"""Checkpoints in installed packages, without importing the packages."""

from pathlib import Path
from typing import Any

from tightrope.checkpoint.folder import check_folder, config_in, copy, files_in
from tightrope.checkpoint.source import Source
from tightrope.errors import ConfigError
from tightrope.sources.local import package_folder, package_version

check = check_folder


def local_files(source: Source) -> list[Path]:
    """Return no files: the package version identifies them. Raise ConfigError if one is missing."""
    files_in(source.text, folder_of(source))
    return []


def libraries(source: Source) -> dict[str, str | None]:
    """Return the version of the package."""
    name = source.location.partition("/")[0]
    return {name: package_version(name)}


def config_json(source: Source) -> dict[str, Any]:
    """Return the model's config.json."""
    return config_in(source.text, folder_of(source))


def fetch(source: Source, folder: Path) -> None:
    """Copy the checkpoint into `folder`."""
    copy(source.text, files_in(source.text, folder_of(source)), folder)


def folder_of(source: Source) -> Path:
    """Return the folder in the package; raise ConfigError if package or folder is missing."""
    name, _, inner = source.location.partition("/")
    folder = package_folder(source.text, name) / inner
    if not folder.is_dir():
        raise ConfigError(f"{source.text}: package {name} has no folder {inner!r}")
    return folder
