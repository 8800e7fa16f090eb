"""Where a checkpoint comes from, as a string of the configuration says it."""

from collections.abc import Callable
from importlib import import_module
from typing import Any, NamedTuple

from tightrope.errors import ConfigError
from tightrope.signature import TEXT

# kinds with what follows the colon; each has a module of its name in `checkpoint/sources`
KINDS = {
    "hub": "owner/name@revision",
    "path": "folder",
    "package": "module/folder",
    "scratch": "architecture",
    "onnx": "file.onnx",
}
# modules that keep a checkpoint as it is, where PyTorch cannot load it
KEEPERS = {"onnx": "onnx/imported"}


class Source(NamedTuple):
    """A source as the configuration writes it, its parts, and what a job is told of it."""

    text: str
    kind: str
    place: str
    task: str = TEXT
    seed: int = 0
    sha256: str | None = None


def parse_source(text: str, **told: Any) -> Source:
    """The source with what is told of it; raises ConfigError naming the kinds there are."""
    kind, _, place = text.partition(":")
    if kind not in KINDS or not place:
        known = ", ".join(f"{name}:{form}" for name, form in KINDS.items())
        raise ConfigError(f"{text}: no checkpoint source; there are {known}")
    return Source(text, kind, place, **told)


def load_kind(source: Source) -> Any:
    """The module of its kind, loaded by name: no other kind's is part of a job's code.

    Of a source it has `local_files`, `libraries` and `longest_sequence` for the plan; for the job
    `fetch(source, folder)`, which gives the revision if there is one, and `check(source, folder)`,
    which gives the config.json of what was fetched or raises TightropeError.
    """
    return import_module(f"tightrope.checkpoint.sources.{source.kind}")


def modules(text: str) -> list[str]:
    """Source files of what `load_kind` loads for that source."""
    return [f"tightrope/checkpoint/sources/{parse_source(text).kind}.py"]


def keeper_of(text: str) -> Callable[..., None] | None:
    """The function that keeps such a checkpoint as it is, None where it is loaded and trained."""
    name = KEEPERS.get(parse_source(text).kind)
    return import_module(f"tightrope/{name}".replace("/", ".")).keep_checkpoint if name else None


def keeper_modules(text: str) -> list[str]:
    """Source files of what `keeper_of` loads for that source."""
    name = KEEPERS.get(parse_source(text).kind)
    return [f"tightrope/{name}.py"] if name else []


def local_files(text: str, *, task: str = TEXT) -> list[str]:
    """Files that a path: or onnx: source copies, none for the other kinds; reads no content.

    Raises ConfigError for an unknown kind, a missing folder, file or package.
    """
    source = parse_source(text, task=task)
    return [str(file) for file in load_kind(source).local_files(source)]


def libraries(text: str) -> dict[str, str | None]:
    """Versions of the libraries and packages that shape the copied or random weights."""
    source = parse_source(text)
    return dict(load_kind(source).libraries(source))


def longest_sequence(text: str) -> int | None:
    """Most tokens that a local model takes, by its config.json; None where it is not known."""
    source = parse_source(text)
    return load_kind(source).longest_sequence(source)
