"""Fetch or copy the source checkpoint of a model, and check it."""

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
    quantized: bool = False,
) -> None:
    """Put the files of `source` next to `manifest`, check them, and write the manifest last.

    Raises TightropeError if weights are missing, truncated, not safetensors, or do not match
    `expected_sha256`, if they do not fit a model of the task, or if an ONNX file has Q/DQ and is
    not said to be `quantized`, or the other way round. Code of the source is never run.
    """
    settings = {"task": task, "seed": seed, "sha256": expected_sha256, "quantized": quantized}
    origin = parse_source(source, **settings)
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
