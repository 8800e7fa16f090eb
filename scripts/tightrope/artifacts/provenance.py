"""Digests of code and versions of libraries, as short values that Snakemake compares."""

import ast
import hashlib
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from tightrope.errors import TightropeError

# distributions for a GPU that provide the same module
IN_PLACE_OF = {"onnxruntime": "onnxruntime-gpu"}


def code_digest(root: Path | str, *sources: str) -> str:
    """Return a digest of `sources` and of every project module under `root` that they import.

    Comments, formatting and docstrings do not change it. Raises TightropeError for a relative
    import, which this digest cannot follow.
    """
    seen: dict[Path, str] = {}
    queue = [Path(root, source) for source in sources]
    while queue:
        path = queue.pop()
        if path not in seen:
            seen[path], imported = syntax(path)
            queue += [file for name in imported for file in module_files(Path(root), name)]
    dump = "\n".join(f"{path.relative_to(root)} {seen[path]}" for path in sorted(seen))
    return hashlib.sha256(dump.encode()).hexdigest()[:12]


@cache
def syntax(path: Path) -> tuple[str, tuple[str, ...]]:
    """Return the AST dump of a source file without docstrings, and the names it may import."""
    tree = ast.parse(path.read_text(), filename=str(path))
    names = tuple(imports(tree, path))
    for node in ast.walk(tree):
        drop_docstring(node)
    return ast.dump(tree), names


def drop_docstring(node: ast.AST) -> None:
    """Remove the docstring of a module, class or function in place."""
    kinds = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    if isinstance(node, kinds) and ast.get_docstring(node, clean=False) is not None:
        node.body = node.body[1:]


def imports(tree: ast.AST, path: Path) -> Iterator[str]:
    """Yield every dotted name that `tree` could import, at any depth."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            if node.level:
                raise TightropeError(
                    f"{path}:{node.lineno}: relative import; write the full module name, "
                    "else changes behind it would go unnoticed"
                )
            yield node.module or ""
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


@cache
def module_files(root: Path, name: str) -> tuple[Path, ...]:
    """Return the files that importing `name` runs: `__init__` of its packages, and the module."""
    parts = name.split(".")
    folders = [root.joinpath(*parts[: i + 1], "__init__.py") for i in range(len(parts))]
    module = root.joinpath(*parts).with_suffix(".py") if name else root
    return tuple(path for path in [*folders, module] if path.is_file())


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
