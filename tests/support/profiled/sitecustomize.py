"""Writes which functions of the project a job runs: on PYTHONPATH of the runs of a test.

Each function of the package says so itself, by a call that is put before its first statement when
its module is compiled. A profiler would be asked about every call, also of PyTorch's functions.
Each process adds lines to a file of its own in the folder REACHED: the job's rule, wildcards and
digest of code, and the file, the name and the first line of a function. A child that is forked
writes too, and need not end well. The process that plans writes what each digest is of.
"""

import ast
import builtins
import hashlib
import marshal
import os
import sys
from contextlib import suppress
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from pathlib import Path

FOLDER, PROJECT = Path(os.environ["REACHED"]), "/scripts/tightrope/"
DIGESTS = "tightrope.artifacts.provenance"
seen: set[tuple[str, int]] = set()


def ran(path: str, name: str, line: int) -> None:
    """Note that the job of this process runs the function in that line."""
    if (path, line) in seen:
        return
    job = getattr(sys.modules["__main__"], "snakemake", None)
    if job is None or is_imported():
        return
    seen.add((path, line))
    wildcards = ",".join(f"{name}={value}" for name, value in job.wildcards.items())
    words = [job.rule, wildcards, job.params.code, path, name, line]
    with (FOLDER / f"{os.getpid()}.ran").open("a") as stream:
        stream.write("\t".join(map(str, words)) + "\n")


def is_imported() -> bool:
    """Whether a function is called to make a constant of a module, which the job may not use."""
    frame = sys._getframe(2)
    while frame := frame.f_back:
        if frame.f_code.co_name == "<module>" and PROJECT in frame.f_code.co_filename:
            return True
    return False


class Loader(SourceFileLoader):
    """Compiles a module so that its functions call `ran`."""

    def get_code(self, fullname: str):
        source = self.get_data(self.path)
        where = self.path.partition("/scripts/")[2]
        kept = FOLDER / f"{hashlib.sha256(self.path.encode() + source).hexdigest()}.code"
        with suppress(OSError):
            return marshal.loads(kept.read_bytes())
        tree = ast.parse(source)
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef):
                call = ast.parse(f"__ran__({where!r}, {node.name!r}, {node.lineno})").body
                node.body[ast.get_docstring(node) is not None : 0] = call
        code = compile(ast.fix_missing_locations(tree), self.path, "exec")
        part = kept.with_suffix(f".{os.getpid()}")
        part.write_bytes(marshal.dumps(code))
        part.rename(kept)
        return code

    def exec_module(self, module) -> None:
        super().exec_module(module)
        if module.__name__ == DIGESTS:
            module.code_digest = noted(module.code_digest)


def noted(digest):
    """The function that computes a digest of code, which also writes what that is of."""

    def wrapper(scripts, *entries: str) -> str:
        found = digest(scripts, *entries)
        with (FOLDER / "digests").open("a") as stream:
            stream.write("\t".join([found, *entries]) + "\n")
        return found

    return wrapper


class Finder(PathFinder):
    """Finds modules of the project for that loader."""

    @classmethod
    def find_spec(cls, fullname: str, path=None, target=None) -> ModuleSpec | None:
        if fullname.partition(".")[0] != "tightrope":
            return None
        spec = super().find_spec(fullname, path, target)
        if spec and isinstance(spec.loader, SourceFileLoader):
            spec.loader = Loader(fullname, spec.loader.path)
        return spec


builtins.__ran__ = ran
sys.meta_path.insert(0, Finder)
