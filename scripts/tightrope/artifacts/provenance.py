"""Digests of code and versions of libraries, as short values that Snakemake compares.

The code of a rule are the definitions of this project that its script can reach, by the names that
it mentions. A definition is a function, a class as a whole, or a name that a module assigns. What
else a module does when it is imported are its statements, for which `STATEMENTS` stands.
"""

import ast
import hashlib
import symtable
from collections.abc import Iterable, Iterator
from contextlib import suppress
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from importlib.util import cache_from_source
from pathlib import Path
from typing import Any, NamedTuple

from tightrope.artifacts.files import read_json, write_json
from tightrope.errors import ArtifactError, StorageError, TightropeError

# distributions for a GPU that provide the same module
IN_PLACE_OF = {"onnxruntime": "onnxruntime-gpu"}
STATEMENTS = "*"
# of this module, which decides what is kept of the others
OWN_DIGEST = hashlib.sha256(Path(__file__).read_bytes()).hexdigest()
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


class Module(NamedTuple):
    """What a source file defines, imports and does.

    `digests` has each definition, and STATEMENTS if there are any; `uses` what they mention, as
    dotted names from the root: `tightrope.artifacts.files.read_json`. `aliases` has the names that
    any import statement in the file binds, `imports` the modules that importing this one may
    import.
    """

    digests: dict[str, str]
    uses: dict[str, list[str]]
    aliases: dict[str, list[str]]
    imports: list[str]


class Sources:
    """The source files below `root`, a folder from which modules are imported."""

    def __init__(self, root: Path | str) -> None:
        self.root = Path(root)
        self.modules: dict[str, Module] = {}
        self.file_of = cache(self._file_of)
        self.resolved = cache(self._resolved)
        self.next_of = cache(self._next_of)

    def reached(self, entries: Iterable[str]) -> dict[tuple[str, str], str]:
        """Return the digests of all definitions (module, name) that the entries can reach.

        An entry is the file of a whole module, `tightrope/engines/tvm.py`, or one definition of
        it, `tightrope/engines/tvm.py:load`.
        """
        queue: list[tuple[str, str]] = []
        for entry in entries:
            path, _, name = entry.partition(":")
            module = path.removesuffix(".py").replace("/", ".")
            queue += [(module, name)] if name else self.whole(module)
        seen = set(queue)
        while queue:
            new = self.next_of(queue.pop()) - seen
            seen |= new
            queue += new
        tables = {one: self.module(one[0]).digests for one in seen}
        return {one: table[one[1]] for one, table in tables.items() if one[1] in table}

    def _next_of(self, definition: tuple[str, str]) -> frozenset[tuple[str, str]]:
        """Return what a definition mentions, and what is imported with its module."""
        module, name = definition
        if name == STATEMENTS:
            found = {(one, STATEMENTS) for one in self.packages_and_imports(module)}
        else:
            found = {(module, STATEMENTS)}
        for use in self.module(module).uses.get(name, ()):
            found.update(self.resolved(use))
        return frozenset(found)

    def whole(self, module: str) -> list[tuple[str, str]]:
        """Return all definitions of a module."""
        return [(module, name) for name in self.module(module).digests]

    def packages_and_imports(self, module: str) -> Iterator[str]:
        """Yield what is imported with a module: the packages around it, and what it imports."""
        for name in (module, *self.module(module).imports):
            parts = name.split(".")
            for count in range(1, len(parts) + 1):
                if self.file_of(".".join(parts[:count])):
                    yield ".".join(parts[:count])

    def _resolved(self, dotted: str) -> list[tuple[str, str]]:
        """Return the definitions that a dotted name stands for, none for another library's.

        That of a module, which is then used as a value, stands for all of them.
        """
        parts = dotted.split(".")
        for count in range(len(parts), 0, -1):
            module, rest = ".".join(parts[:count]), parts[count:]
            if self.file_of(module):
                break
        else:
            return []
        table = self.module(module)
        if not rest:
            return self.whole(module)
        if rest[0] in table.digests:
            return [(module, rest[0])]
        targets = [".".join([target, *rest[1:]]) for target in table.aliases.get(rest[0], ())]
        return [one for target in targets for one in self.resolved(target)]

    def _file_of(self, module: str) -> Path | None:
        """Return the source file of a module or package, None where there is none."""
        path = self.root.joinpath(*module.split("."))
        choices = (path.with_suffix(".py"), path / "__init__.py")
        return next((one for one in choices if one.is_file()), None)

    def module(self, name: str) -> Module:
        """Return what the module with that name defines, imports and does."""
        if name not in self.modules:
            file = self.file_of(name)
            if file is None:
                raise TightropeError(f"{self.root}: there is no module {name}")
            self.modules[name] = read_module(file, name)
        return self.modules[name]


def read_module(path: Path, name: str) -> Module:
    """Parse a source file, which is the module `name`.

    Parsing all modules takes seconds per plan, so the result is kept beside the file's bytecode,
    with the SHA-256 of the text that it belongs to, and of this module's own.
    """
    text = path.read_text()
    key = f"{name} {hashlib.sha256(text.encode()).hexdigest()} {OWN_DIGEST}"
    kept = Path(cache_from_source(path)).with_suffix(".reach.json")
    with suppress(ArtifactError, KeyError, TypeError):
        entry = read_json(kept)
        if entry["key"] == key:
            return Module(*entry["module"])
    module = parsed(ast.parse(text, filename=str(path)), name, path)
    with suppress(OSError, StorageError):  # sources of another user, say
        write_json(kept, {"key": key, "module": list(module)})
    return module


def parsed(tree: ast.Module, name: str, path: Path) -> Module:
    """Return what the syntax tree of the module `name` defines, imports and does."""
    aliases = imported_names(tree, path)
    statements: dict[str, list[ast.stmt]] = {}
    for node in tree.body:
        for defined in defined_by(node):
            statements.setdefault(defined, []).append(node)
    imports = [one for node in tree.body for one in modules_imported(node)]
    uses: dict[str, list[str]] = {}
    for defined, nodes in statements.items():
        mentioned = dict.fromkeys(one for node in nodes for one in names_in(node))
        uses[defined] = []
        for dotted in mentioned:
            first, _, rest = dotted.partition(".")
            own = [f"{name}.{first}"] if first in statements else []
            targets = [*aliases.get(first, ()), *own]
            uses[defined] += [f"{target}.{rest}".rstrip(".") for target in targets]
        uses[defined].sort()
    digests = {defined: digest_of(nodes) for defined, nodes in statements.items()}
    return Module(digests, uses, aliases, sorted(set(imports)))


def imported_names(tree: ast.AST, path: Path) -> dict[str, list[str]]:
    """Return the names that import statements bind, at any depth, and what each may stand for."""
    found: dict[str, list[str]] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for one in node.names:
                target = one.name if one.asname else one.name.partition(".")[0]
                found.setdefault(one.asname or target, []).append(target)
        elif isinstance(node, ast.ImportFrom):
            for one in node.names:
                if node.level:
                    raise TightropeError(
                        f"{path}:{node.lineno}: relative import; write the full module name, "
                        "else changes behind it would go unnoticed"
                    )
                found.setdefault(one.asname or one.name, []).append(f"{node.module}.{one.name}")
    return found


def modules_imported(node: ast.stmt) -> Iterator[str]:
    """Yield the names of modules that a statement of a module may import when it is imported."""
    if isinstance(node, (*FUNCTIONS, ast.ClassDef)) or is_for_types(node):
        return
    for one in ast.walk(node):
        if isinstance(one, ast.Import):
            yield from (alias.name for alias in one.names)
        elif isinstance(one, ast.ImportFrom):
            yield from (f"{one.module}.{alias.name}" for alias in one.names)


def is_for_types(node: ast.stmt) -> bool:
    """Return whether a statement is `if TYPE_CHECKING`, which does nothing when it runs."""
    return isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"


def defined_by(node: ast.stmt) -> list[str]:
    """Return the names that a statement of a module defines, STATEMENTS for what defines none."""
    if isinstance(node, (ast.Import, ast.ImportFrom)) or is_for_types(node) or is_docstring(node):
        return []
    if isinstance(node, (*FUNCTIONS, ast.ClassDef)):
        return [node.name]
    targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", node)]
    names = [one for target in targets for one in parts_of(target)]
    if isinstance(node, (ast.Assign, ast.AnnAssign, ast.AugAssign)) and all(
        isinstance(one, ast.Name) for one in names
    ):
        return [one.id for one in names if isinstance(one, ast.Name)]
    return [STATEMENTS]


def parts_of(target: ast.AST) -> list[ast.AST]:
    """Return the targets of an assignment, also of one to several names."""
    if isinstance(target, (ast.Tuple, ast.List)):
        return [one for element in target.elts for one in parts_of(element)]
    return [target]


def is_docstring(node: ast.stmt) -> bool:
    """Return whether a statement is a lone string."""
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def digest_of(nodes: list[ast.stmt]) -> str:
    """Return a digest of statements, without docstrings and where imported names come from."""
    return hashlib.sha256("\n".join(map(dumped, nodes)).encode()).hexdigest()[:16]


def dumped(node: Any) -> str:
    """Format a syntax tree as `ast.dump` does, without docstrings and the modules of imports."""
    if isinstance(node, list):
        return f"[{','.join(map(dumped, node))}]"
    if not isinstance(node, ast.AST):
        return repr(node)
    fields = dict(ast.iter_fields(node))
    if not fields.get("type_params", True):  # which Python 3.11 does not have
        del fields["type_params"]
    if isinstance(node, ast.ClassDef):  # which has docstrings of its fields as well
        fields["body"] = [one for one in node.body if not is_docstring(one)]
    elif isinstance(node, FUNCTIONS) and is_docstring(node.body[0]):
        fields["body"] = node.body[1:]
    if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("tightrope"):
        fields["module"] = "tightrope"
    return f"{type(node).__name__}({','.join(f'{k}={dumped(v)}' for k, v in fields.items())})"


def names_in(node: ast.stmt) -> Iterator[str]:
    """Yield the names that a statement takes from its module, dotted as far as they are attributes.

    Those of the functions in it hide those of the module.
    """
    free, inner = free_names(node), set[ast.AST]()
    for one in ast.walk(node):  # an attribute comes before what it is of
        if isinstance(one, ast.Attribute):
            inner.add(one.value)
        if isinstance(one, (ast.Name, ast.Attribute)) and one not in inner:
            first, *attributes = ast.unparse(one).split(".")
            if first in free and all(map(str.isidentifier, attributes)):
                yield ".".join([first, *attributes])
        for annotation in (getattr(one, "annotation", None), getattr(one, "returns", None)):
            for part in ast.walk(annotation) if annotation else ():
                if isinstance(part, ast.Constant) and isinstance(part.value, str):
                    with suppress(SyntaxError):  # what Literal[...] lists need be no names
                        yield from names_in(ast.parse(part.value).body[0])


def free_names(node: ast.stmt) -> set[str]:
    """Return the names in a statement that are not those of a function in it."""
    found: set[str] = set()
    scopes = [symtable.symtable(ast.unparse(node), "", "exec")]
    for scope in scopes:
        scopes += scope.get_children()
        within = scope.get_type() == "function"
        for one in scope.get_symbols():
            if one.is_global() or one.is_imported() or (one.is_referenced() and not within):
                found.add(one.get_name())
    return found


# of a folder: each file is read once per process
sources_of = cache(Sources)


@cache
def code_digest(root: Path | str, *entries: str) -> str:
    """Return a digest of the definitions that the code of `entries` can reach.

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
