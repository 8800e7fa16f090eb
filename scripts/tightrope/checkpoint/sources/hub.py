"""Checkpoints of the Hugging Face Hub."""

from pathlib import Path

from tightrope.artifacts.files import storage_errors
from tightrope.checkpoint.folder import (
    FILES,
    check_folder,
    check_present,
    copy,
    no_config,
    no_libraries,
)
from tightrope.checkpoint.source import Source
from tightrope.sources.hub import check_reachable, fetch_error, parse_repository

REMEDY = (
    "to use a local copy instead, give the model checkpoint 'path:FOLDER', "
    "for example with --config 'models={NAME: {checkpoint: \"path:my/folder\"}}'"
)

check, libraries, config_json = check_folder, no_libraries, no_config


def local_files(source: Source) -> list[Path]:
    """Return no files; raise ConfigError for an invalid Hub source."""
    parse_repository(source.text, source.location)
    return []


def fetch(source: Source, folder: Path) -> str:
    """Download the model files into `folder`; return the fetched commit."""
    from huggingface_hub import HfApi, snapshot_download

    repository = parse_repository(source.text, source.location)
    with storage_errors(folder):
        check_reachable(source.text, REMEDY)
        try:
            info = HfApi().model_info(repository.name, revision=repository.revision, timeout=30)
            snapshot = snapshot_download(
                repository.name, revision=info.sha, allow_patterns=list(FILES)
            )
        except Exception as error:
            raise fetch_error(source.text, error, REMEDY) from error
        files = [file for file in sorted(Path(snapshot).iterdir()) if file.name in FILES]
        copy(source.text, files, folder)
    check_present(source.text, folder)
    return str(info.sha)
