"""Checkpoint sources as written in the configuration, and the files that they become."""

from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

from tightrope.artifacts.manifest import clear_folder, write_manifest
from tightrope.errors import ConfigError
from tightrope.model import config as fields
from tightrope.signature import TEXT

# kind and the form after its colon; each has a module of that name in `checkpoint/sources`
KINDS = {
    "hub": "owner/name@revision",
    "path": "folder",
    "package": "module/folder",
    "scratch": "architecture",
    "onnx": "file.onnx",
    "model": "name of another model",
}
# modules that keep a checkpoint unchanged because PyTorch cannot load it
IMPORTERS = {"onnx": "onnx/imported"}


class Source(NamedTuple):
    """A checkpoint source: its configuration string, parsed parts, and settings of the job."""

    text: str
    kind: str
    location: str
    task: str = TEXT
    seed: int = 0
    sha256: str | None = None
    quantized: bool = False


def parse_source(text: str, **settings: Any) -> Source:
    """Parse a source and add job `settings`; raise ConfigError that lists the known kinds."""
    kind, _, location = text.partition(":")
    if kind not in KINDS or not location:
        forms = ", ".join(f"{name}:{form}" for name, form in KINDS.items())
        raise ConfigError(f"{text}: no checkpoint source; there are {forms}")
    return Source(text, kind, location, **settings)


def load_kind(source: Source) -> Any:
    """Import the module of the source's kind, so that a job does not depend on other kinds.

    For the plan it has `local_files`, `libraries` and `config_json`; for the job
    `fetch(source, folder)`, which returns the revision if there is one, and `check(source,
    folder)`, which returns the config.json of the fetched checkpoint or raises TightropeError.
    """
    return import_module(f"tightrope.checkpoint.sources.{source.kind}")


def modules(text: str) -> list[str]:
    """Return the source files that `load_kind` loads for that source."""
    return [f"tightrope/checkpoint/sources/{parse_source(text).kind}.py"]


def importer_of(text: str) -> Callable[..., None] | None:
    """Return the function that keeps a checkpoint unchanged; None if it is loaded and trained."""
    name = IMPORTERS.get(parse_source(text).kind)
    return import_module(f"tightrope/{name}".replace("/", ".")).import_checkpoint if name else None


def importer_modules(text: str) -> list[str]:
    """Return the source files that `importer_of` loads for that source."""
    name = IMPORTERS.get(parse_source(text).kind)
    return [f"tightrope/{name}.py"] if name else []


def local_files(text: str, *, task: str = TEXT) -> list[str]:
    """Return the files that a path: or onnx: source copies, none for other kinds; reads no content.

    Raises ConfigError for an unknown kind, or a missing folder, file or package.
    """
    source = parse_source(text, task=task)
    return [str(file) for file in load_kind(source).local_files(source)]


def libraries(text: str) -> dict[str, str | None]:
    """Return versions of libraries and packages that determine the copied or random weights."""
    source = parse_source(text)
    return dict(load_kind(source).libraries(source))


def local_config(text: str) -> dict[str, Any] | None:
    """Return a local model's config.json; None if there is none, or none before it is fetched."""
    source = parse_source(text)
    return load_kind(source).config_json(source)


def longest_sequence(text: str) -> int | None:
    """Return a local model's token limit from its config.json; None if unknown."""
    config = local_config(text)
    return None if config is None else fields.positions(config)


def unusable_head(text: str) -> str | None:
    """Return why a local model cannot be used without training; None if it can, or is unknown."""
    source = parse_source(text)
    config = None if source.kind == "scratch" else local_config(text)
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
