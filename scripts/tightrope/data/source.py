"""Where data come from, as a string of the configuration says it; nothing of it is read here."""

from importlib import import_module
from typing import Any

from tightrope.errors import ConfigError
from tightrope.signature import IMAGE, TEXT

KINDS = {
    TEXT: ("docstrings:packages", "files:pattern", "hub:owner/name@revision", "random"),
    IMAGE: ("digits", "files:pattern", "hub:owner/name@revision", "random"),
}
WITHOUT_PLACE = ("digits", "random")
# the module of each kind in `data/sources`; of random inputs there is nothing to read
MODULES = {
    TEXT: {"docstrings": "docstrings", "files": "text_files", "hub": "hub_texts"},
    IMAGE: {"digits": "digits", "files": "local_images", "hub": "hub_images"},
}


def parse_source(source: str, *, task: str = TEXT) -> tuple[str, str]:
    """Kind and place of a data source; raises ConfigError naming the kinds that the task has."""
    kind, _, place = source.partition(":")
    known = [known.partition(":")[0] for known in KINDS[task]]
    if kind not in known or (kind in WITHOUT_PLACE) == bool(place):
        raise ConfigError(f"{source}: no data source of {task}; there are {', '.join(KINDS[task])}")
    return kind, place


def load_kind(kind: str, *, task: str) -> Any:
    """The module of that kind of source, loaded by name: no other kind's is part of a job's code.

    It has `local_files` and `libraries` for the plan; for the job `read`, which gives the
    `Material` of texts, or of images after they were put into a store.
    """
    return import_module(f"tightrope.data.sources.{MODULES[task][kind]}")


def modules(source: str, *, task: str = TEXT) -> list[str]:
    """Source files of what `load_kind` loads for that source."""
    name = MODULES[task].get(parse_source(source, task=task)[0])
    return [f"tightrope/data/sources/{name}.py"] if name else []


def local_files(source: str, *, task: str = TEXT, images: str | None = None) -> list[str]:
    """Local tables and archives that `source` reads, none for a remote one; reads no content.

    Loose images may be too many to be inputs of a job, so `libraries` has a digest of them.
    Raises ConfigError for an unknown kind, a pattern without matches, a missing package.
    """
    kind, place = parse_source(source, task=task)
    if images is not None and (kind, task) != ("files", IMAGE):
        raise ConfigError(f"images = {images}: only a table of images (files:...) has this key")
    if kind not in MODULES[task]:
        return []
    files = load_kind(kind, task=task).local_files(source, place, images=images)
    return [str(file) for file in files]


def libraries(source: str, *, task: str = TEXT, images: str | None = None) -> dict[str, str | None]:
    """Versions of what shapes the data: libraries, packages of docstrings, and loose images."""
    kind, place = parse_source(source, task=task)
    if kind not in MODULES[task]:
        return {}
    return dict(load_kind(kind, task=task).libraries(source, place, images=images))
