"""The programs of a bundle are short, and import nothing of ours."""

import ast
import sys
from pathlib import Path

import pytest
from tightrope.engine_table import ENGINES
from tightrope.plan.job_inputs import FOLDER

PROGRAMS = Path(__file__).parents[3] / "scripts" / FOLDER
ALL = sorted(path.relative_to(PROGRAMS).as_posix() for path in PROGRAMS.rglob("*.py"))
# beside numpy and what an engine imports
OF_INPUTS = {"images.py": {"PIL"}, "texts.py": {"tokenizers"}}
MODULES = {"apache-tvm": "tvm"}


@pytest.mark.parametrize("name", ALL)
def test_a_program_imports_what_its_bundle_requires(name: str) -> None:
    tree = ast.walk(ast.parse((PROGRAMS / name).read_text()))
    found = [one for one in tree if isinstance(one, ast.Import | ast.ImportFrom)]
    names = [getattr(one, "module", None) or one.names[0].name for one in found]
    modules = {one.partition(".")[0] for one in names}
    foreign = modules - sys.stdlib_module_names - {"bundled", "predict", "numpy"}
    named = ENGINES[Path(name).stem].bundled or () if name.startswith("engines/") else ()
    allowed = {MODULES.get(one, one) for one in named} | OF_INPUTS.get(name, set())
    assert foreign <= allowed
