"""Data sources as written in the configuration; this module reads no data."""

from importlib import import_module
from typing import Any

from tightrope.errors import ConfigError
from tightrope.signature import IMAGE, TEXT

KINDS = {
    TEXT: ("docstrings:packages", "files:pattern", "hub:owner/name@revision", "random"),
    IMAGE: ("digits", "files:pattern", "hub:owner/name@revision", "random"),
}
WITHOUT_LOCATION = ("digits", "random")
# the module of each kind in `data/sources`; random inputs need none
MODULES = {
    TEXT: {"docstrings": "docstrings", "files": "text_files", "hub": "hub"},
    IMAGE: {"digits": "digits", "files": "local_images", "hub": "hub"},
}


def parse_source(source: str, *, task: str = TEXT) -> tuple[str, str]:
    """Return kind and location of a data source; raise ConfigError that lists the task's kinds."""
    kind, _, location = source.partition(":")
    kinds = [form.partition(":")[0] for form in KINDS[task]]
    if kind not in kinds or (kind in WITHOUT_LOCATION) == bool(location):
        raise ConfigError(f"{source}: no data source of {task}; there are {', '.join(KINDS[task])}")
    return kind, location


def load_kind(kind: str, *, task: str) -> Any:
    """Import the module of that kind of source, so that a job does not depend on other kinds.

    For the plan it has `local_files` and `libraries`; for the job `read`, which returns the
    `Material` of texts, or of images after adding them to a store.
    """
    return import_module(f"tightrope.data.sources.{MODULES[task][kind]}")


def modules(source: str, *, task: str = TEXT) -> list[str]:
    """Return the source files that `load_kind` loads for that source."""
    name = MODULES[task].get(parse_source(source, task=task)[0])
    return [f"tightrope/data/sources/{name}.py"] if name else []


def local_files(source: str, *, task: str = TEXT, images: str | None = None) -> list[str]:
    """Return local tables and archives that `source` reads, none if remote; reads no content.

    Loose images may be too many for inputs of a job, so `libraries` has a digest of them. Raises
    ConfigError for an unknown kind, a pattern without matches, or a missing package.
    """
    kind, location = parse_source(source, task=task)
    if images is not None and (kind, task) != ("files", IMAGE):
        raise ConfigError(f"images = {images}: only a table of images (files:...) has this key")
    if kind not in MODULES[task]:
        return []
    files = load_kind(kind, task=task).local_files(source, location, images=images)
    return [str(file) for file in files]


def may_be_one_pool(source: str, *, task: str = TEXT, images: str | None = None) -> bool:
    """Return whether `source` may lack evaluation examples of its own; reads no content.

    Only the file names of local tables of texts rule it out.
    """
    kind, location = parse_source(source, task=task)
    if (kind, task) != ("files", TEXT):
        return True
    return load_kind(kind, task=task).files_by_role(source, location)[1] is None


def libraries(source: str, *, task: str = TEXT, images: str | None = None) -> dict[str, str | None]:
    """Return versions of libraries and docstring packages, and the digest of loose images."""
    kind, location = parse_source(source, task=task)
    if kind not in MODULES[task]:
        return {}
    return dict(load_kind(kind, task=task).libraries(source, location, task=task, images=images))
