"""Refuse code that `tightrope.artifacts.provenance` cannot follow: definitions found by a text.

`make lint` runs it. What is loaded by name is allowed in the functions below, and is listed for the
digests in `tightrope/plan/jobs.py`.
"""

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

SCRIPTS = Path(__file__).parents[1] / "scripts"
sys.path.insert(0, str(SCRIPTS))

from tightrope.artifacts.provenance import Sources, imported_names  # noqa: E402 - where it is, is above

LOADS_BY_NAME = {
    "tightrope/checkpoint/source.py": {"parse_source", "importer_of"},
    "tightrope/data/source.py": {"load_kind"},
    "tightrope/engine_table.py": {"read_specs"},
    "tightrope/engines/load.py": {"engine_module"},
    "tightrope/measure/study.py": {"measure_study"},
    "tightrope/training/train.py": {"trained"},
}
# files of a bundle, which jobs copy and do not run
PROGRAMS = "tightrope/bundle/programs/"
OF_ANY_VALUE = ("getattr", "setattr", "vars")
LOOK_UPS = (*OF_ANY_VALUE, "import_module", "importlib.import_module", "__import__", "eval", "exec")


def findings(path: Path, sources: Sources) -> Iterator[str]:
    """Yield the look-ups of a source file by which a definition could be used unseen."""
    tree = ast.parse(path.read_text(), filename=str(path))
    aliases = imported_names(tree, path)
    modules = {
        name for name, targets in aliases.items() if any(sources.file_of(one) for one in targets)
    }
    name = path.relative_to(SCRIPTS).as_posix()
    for top in tree.body:
        allowed = getattr(top, "name", None) in LOADS_BY_NAME.get(name, ())
        calls = (one for one in ast.walk(top) if isinstance(one, ast.Call))
        for call in (one for one in calls if ast.unparse(one.func) in LOOK_UPS):
            first = call.args[0] if call.args else None
            of_module = isinstance(first, ast.Name) and first.id in modules
            if of_module or (ast.unparse(call.func) not in OF_ANY_VALUE and not allowed):
                yield f"scripts/{name}:{call.lineno}: {ast.unparse(call)}"


def main() -> None:
    """Print what the digests of code cannot follow; exit with an error where there is any."""
    sources = Sources(SCRIPTS)
    paths = [one for one in sorted(SCRIPTS.rglob("*.py")) if PROGRAMS not in one.as_posix()]
    found = [line for path in paths for line in findings(path, sources)]
    if found:
        sys.exit(
            "\n".join(found) + "\nName the definition in place of a text, else a change of it "
            "makes nothing stale (tools/check_reach.py)"
        )


if __name__ == "__main__":
    main()
