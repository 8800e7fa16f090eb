"""Checkpoints in folders of this machine."""

from pathlib import Path

from tightrope.checkpoint.source import Source
from tightrope.checkpoint.sources.folder import check_folder, copy, files_in, positions_in
from tightrope.errors import ConfigError

check = check_folder


def local_files(source: Source) -> list[Path]:
    """The files of the folder that are copied."""
    return files_in(source.text, folder_of(source))


def libraries(_source: Source) -> dict[str, str | None]:
    """None: the files themselves are inputs."""
    return {}


def longest_sequence(source: Source) -> int | None:
    """Most tokens that the model takes."""
    return positions_in(source.text, folder_of(source))


def fetch(source: Source, folder: Path) -> None:
    """Copy the checkpoint into `folder`."""
    copy(local_files(source), folder)


def folder_of(source: Source) -> Path:
    """The folder that is named; raises ConfigError where there is none."""
    folder = Path(source.place).expanduser()
    if not folder.is_dir():
        raise ConfigError(f"{source.text}: there is no such folder")
    return folder
