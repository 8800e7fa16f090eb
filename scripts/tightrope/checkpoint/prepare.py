"""The checkpoint that a model starts from: fetched or copied, and checked."""

from pathlib import Path

from tightrope.artifacts.manifest import clear_folder, write_manifest
from tightrope.checkpoint.source import load_kind, parse_source
from tightrope.signature import TEXT


def prepare_checkpoint(
    manifest: Path | str,
    *,
    source: str,
    expected_sha256: str | None,
    seed: int,
    task: str = TEXT,
) -> None:
    """Put the files of `source` beside `manifest`, check them, and write the manifest last.

    Raises TightropeError where weights are missing, truncated, not in safetensors, or not
    those of `expected_sha256`, and where no model of the task can be made of them. No code of
    the source is run.
    """
    origin = parse_source(source, task=task, seed=seed, sha256=expected_sha256)
    kind = load_kind(origin)
    folder = clear_folder(manifest)
    revision = kind.fetch(origin, folder)
    config = kind.check(origin, folder)
    write_manifest(
        manifest,
        source=source,
        revision=revision,
        task=task,
        model_type=config["model_type"],
        architecture=next(iter(config.get("architectures") or []), None),
    )
