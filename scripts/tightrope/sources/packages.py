"""Locate folders of installed packages without importing them."""

import importlib.util
from functools import cache
from importlib.metadata import packages_distributions
from pathlib import Path

from tightrope.artifacts.provenance import library_version
from tightrope.errors import ConfigError


@cache
def package_folder(source: str, name: str) -> Path:
    """Return the folder of installed package `name` (top-level); raise ConfigError if missing."""
    spec = importlib.util.find_spec(name) if name.isidentifier() else None
    if spec is None or not spec.submodule_search_locations:
        raise ConfigError(
            f"{source}: there is no installed package {name!r}; install it or choose another"
        )
    return Path(next(iter(spec.submodule_search_locations)))


@cache
def package_version(name: str) -> str | None:
    """Return the version of the distribution that holds the top-level package `name`."""
    owner = distribution_of(name)
    return library_version(owner) if owner else None


@cache
def distribution_of(name: str) -> str | None:
    """Return the distribution that holds the top-level package `name`, None if it is missing."""
    for one in (name, name.replace("_", "-")):
        if library_version(one) is not None:
            return one
    return min(packages_distributions().get(name, []), default=None)
