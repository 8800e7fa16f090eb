"""Checkpoint sources as written in the configuration, and the files that they become."""

from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

from tightrope.artifacts.manifest import clear_folder, write_manifest
from tightrope.checkpoint.kinds import Source
from tightrope.errors import ConfigError
from tightrope.model import config as fields
from tightrope.signature import TEXT
from tightrope.variants import is_onnx

# kind and the form after its colon; each has a class of that name in `checkpoint/kinds.py`
KINDS = {
    "hub": "owner/name@revision",
    "path": "folder",
    "package": "module/folder",
    "scratch": "architecture",
    "onnx": "file.onnx",
    "model": "name of another model",
}
KINDS_OF = "tightrope.checkpoint.kinds"
# keeps a checkpoint unchanged that PyTorch cannot load
IMPORTER = "tightrope/onnx/imported"


def parse_source(text: str, **settings: Any) -> Source:
    """Parse a source and add job `settings`; raise ConfigError that lists the known kinds."""
    kind, _, location = text.partition(":")
    if kind not in KINDS or not location:
        forms = ", ".join(f"{name}:{form}" for name, form in KINDS.items())
        raise ConfigError(f"{text}: no checkpoint source; there are {forms}")
    # by its name, so that a job does not depend on other kinds
    found: type[Source] = getattr(import_module(KINDS_OF), f"{kind.title()}Source")
    return found(text, location, **settings)


def modules(text: str) -> list[str]:
    """Return what `parse_source` loads for that source, as an entry for its digest."""
    return [f"tightrope/checkpoint/kinds.py:{type(parse_source(text)).__name__}"]


def importer_of(text: str) -> Callable[..., None] | None:
    """Return the function that keeps a checkpoint unchanged; None if it is loaded and trained."""
    return import_module(IMPORTER.replace("/", ".")).import_checkpoint if is_onnx(text) else None


def importer_modules(text: str) -> list[str]:
    """Return the source files that `importer_of` loads for that source."""
    return [f"{IMPORTER}.py"] if is_onnx(text) else []


def local_files(text: str, *, task: str = TEXT) -> list[str]:
    """Return the files that a path: or onnx: source copies, none for other kinds; reads no content.

    Raises ConfigError for an unknown kind, or a missing folder, file or package.
    """
    return [str(file) for file in parse_source(text, task=task).local_files()]


def libraries(text: str) -> dict[str, str | None]:
    """Return versions of libraries and packages that determine the copied or random weights."""
    return parse_source(text).libraries()


def local_config(text: str) -> dict[str, Any] | None:
    """Return a local model's config.json; None if there is none, or none before it is fetched."""
    return parse_source(text).config_json()


def longest_sequence(text: str) -> int | None:
    """Return a local model's token limit from its config.json; None if unknown."""
    config = local_config(text)
    return None if config is None else fields.positions(config)


def unusable_head(text: str) -> str | None:
    """Return why a local model cannot be used without training; None if it can, or is unknown."""
    config = None if text.startswith("scratch:") else local_config(text)
    return None if config is None else fields.unusable_head(config)


def known_outputs(text: str) -> int | None:
    """Return the outputs of a local model's head from its config.json; None if unknown."""
    config = local_config(text)
    return None if config is None or not fields.is_classifier(config) else fields.outputs(config)


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
    folder = clear_folder(manifest)
    revision = origin.fetch(folder)
    config = origin.check(folder)
    write_manifest(
        manifest,
        source=source,
        revision=revision,
        task=task,
        model_type=config["model_type"],
        architecture=next(iter(config.get("architectures") or []), None),
    )
