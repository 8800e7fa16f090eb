"""Another model of the configuration, as it was trained."""

from pathlib import Path

from tightrope.artifacts.manifest import read_manifest
from tightrope.artifacts.manifest_types import CheckpointManifest
from tightrope.checkpoint.folder import check_folder, copy, files_in, no_config, no_libraries
from tightrope.checkpoint.source import Source

check, libraries, config_json = check_folder, no_libraries, no_config
CHECKPOINT = Path("checkpoint/checkpoint.json")


def local_files(source: Source) -> list[Path]:
    """Return the manifest of the other model's checkpoint, which its training writes last."""
    return [Path("artifacts", source.location, CHECKPOINT)]


def fetch(source: Source, folder: Path) -> None:
    """Copy the checkpoint into `folder`; raise ArtifactError where a file has changed."""
    # beside the folder of this model, which may be below the prefix of a module
    manifest = folder.parents[1] / source.location / CHECKPOINT
    read_manifest(manifest, CheckpointManifest)
    copy(source.text, files_in(source.text, manifest.parent), folder)
