"""Digests of code and versions of libraries, as short values that Snakemake compares."""

import hashlib
from contextlib import suppress
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from tightrope.artifacts.reach import Sources

# distributions for a GPU that provide the same module
IN_PLACE_OF = {"onnxruntime": "onnxruntime-gpu"}
# of a folder: each file is read once per process
sources_of = cache(Sources)


@cache
def code_digest(root: Path | str, *entries: str) -> str:
    """Return a digest of the definitions that the code of `entries` can reach, see `reach`.

    Comments, formatting, docstrings and the files in which they stand do not change it.
    """
    reached = sources_of(root).reached(entries)
    parts = sorted(f"{name} {digest}" for (_, name), digest in reached.items())
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:12]


@cache
def library_version(name: str) -> str | None:
    """Return the installed version of a distribution or of its GPU counterpart, else None."""
    for one in (name, IN_PLACE_OF.get(name)):
        with suppress(PackageNotFoundError):
            return version(one) if one else None
    return None


def library_versions(*names: str) -> dict[str, str | None]:
    """Return the installed versions of the named distributions without importing them."""
    return {name: library_version(name) for name in names}
