"""Licences of what is in a bundle, as far as they are stated where it came from."""

from typing import TypedDict

from tightrope.bundle.requirements import imported
from tightrope.bundle.subject import Subject
from tightrope.machine.distributions import licence_of
from tightrope.sources.local import distribution_of

PACKAGE, DOCSTRINGS, HUB = "package", "docstrings", "hub"


class Licences(TypedDict):
    """Licences of the checkpoint, of the data and of each distribution that is imported."""

    checkpoint: str
    data: str
    packages: dict[str, str | None]


def licences(subject: Subject) -> Licences:
    """Return the licences of all that a bundle holds or imports."""
    engine, task = subject.variant.engine, subject.checkpoint["task"]
    return {
        "checkpoint": of_source(subject.checkpoint["source"]),
        "data": of_source(subject.data["source"]),
        "packages": {name: licence_of(name) for name in imported(engine, task)},
    }


def of_source(source: str) -> str:
    """Return the licence of a source of data or of a checkpoint, or who states it."""
    kind, _, rest = source.partition(":")
    if kind == PACKAGE:
        return of_package(rest.partition("/")[0])
    if kind == DOCSTRINGS:
        return "; ".join(f"{name}: {of_package(name)}" for name in rest.split(","))
    if kind == HUB:
        return f"stated on the page of {rest}"
    return f"not stated: {source}"


def of_package(module: str) -> str:
    """Return the licence of the distribution that holds a top-level package."""
    name = distribution_of(module)
    return (licence_of(name) if name else None) or "not stated"
