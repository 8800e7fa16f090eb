"""Digests of code and versions of libraries, as short values that Snakemake compares."""

import ast
import hashlib
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from importlib.util import cache_from_source
from pathlib import Path

from tightrope.artifacts.files import read_json, write_json
from tightrope.errors import ArtifactError, StorageError, TightropeError

# distributions for a GPU that provide the same module
IN_PLACE_OF = {"onnxruntime": "onnxruntime-gpu"}


@cache
def code_digest(root: Path | str, *sources: str) -> str:
    """Return a digest of `sources` and of every project module under `root` that they import.

    Comments, formatting and docstrings do not change it. Raises TightropeError for a relative
    import, which this digest cannot follow.
    """
    reached: set[Path] = set()
    queue = [Path(root, source) for source in sources]
    while queue:
        path = queue.pop()
        if path not in reached:
            reached.add(path)
            queue += imported_files(root, path)
    parts = [f"{path.relative_to(root)} {syntax(path)[0]}" for path in sorted(reached)]
    return sha256_of("\n".join(parts))[:12]


@cache
def imported_files(root: Path | str, path: Path) -> tuple[Path, ...]:
    """Return the files under `root` that a source file imports directly."""
    names = syntax(path)[1]
    return tuple(dict.fromkeys(file for name in names for file in module_files(root, name)))


@cache
def syntax(path: Path) -> tuple[str, tuple[str, ...]]:
    """Return a digest of a file's syntax tree without docstrings, and the names it may import.

    Parsing all modules takes a second per plan, so the result is kept beside the file's bytecode,
    with the SHA-256 of the text that it belongs to.
    """
    text = path.read_text()
    kept = Path(cache_from_source(path)).with_suffix(".syntax.json")
    with suppress(ArtifactError, KeyError, TypeError):
        entry = read_json(kept)
        if entry["text_sha256"] == sha256_of(text):
            return entry["syntax_sha256"], tuple(entry["imports"])
    digest, names = parsed(text, path)
    with suppress(OSError, StorageError):  # sources of another user, say
        entry = {"text_sha256": sha256_of(text), "syntax_sha256": digest, "imports": names}
        write_json(kept, entry)
    return digest, names


def parsed(text: str, path: Path) -> tuple[str, tuple[str, ...]]:
    """Parse the text of a source file, see `syntax`."""
    tree = ast.parse(text, filename=str(path))
    names = tuple(dict.fromkeys(imports(tree, path)))
    for node in ast.walk(tree):
        drop_docstring(node)
    return sha256_of(ast.dump(tree)), names


def sha256_of(text: str) -> str:
    """Return the hex digest of a text."""
    return hashlib.sha256(text.encode()).hexdigest()


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
def module_files(root: Path | str, name: str) -> tuple[Path, ...]:
    """Return the files that importing `name` runs: `__init__` of its packages, and the module."""
    parts = name.split(".")
    folders = [Path(root, *parts[: i + 1], "__init__.py") for i in range(len(parts))]
    module = Path(root, *parts).with_suffix(".py") if name else Path(root)
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
