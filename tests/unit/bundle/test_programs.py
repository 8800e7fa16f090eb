"""The programs of a bundle are those of the documentation, short, and import nothing of ours."""

import ast
from pathlib import Path

import pytest
from page_blocks import block
from tightrope.bundle.requirements import IMPORTED
from tightrope.plan.job_inputs import FOLDER

PAGE = "using-an-engine.md"
PROGRAMS = Path(__file__).parents[3] / "scripts" / FOLDER
ALL = sorted(path.relative_to(PROGRAMS).as_posix() for path in PROGRAMS.rglob("*.py"))
# beside numpy and what an engine imports
OF_INPUTS = {"images.py": {"PIL"}, "texts.py": {"tokenizers"}}
MODULES = {"apache-tvm": "tvm"}


def code(text: str) -> str:
    """The program without its docstring, with its imports as on the page."""
    (docstring, *_) = ast.parse(text).body
    lines = text.splitlines(keepends=True)[docstring.end_lineno :]
    return "".join(lines).strip().replace("from bundled.buckets", "from buckets")


@pytest.mark.parametrize("engine", sorted(IMPORTED))
def test_the_program_of_an_engine_is_that_of_the_page(engine: str) -> None:
    _, _, shown = block(PAGE, "python", f"{engine}: engine.py").partition("\n")
    assert code((PROGRAMS / "engines" / f"{engine}.py").read_text()) == shown.strip()


def test_the_buckets_are_those_of_the_page() -> None:
    _, _, shown = block(PAGE, "python", "buckets.py").partition("\n")
    assert code((PROGRAMS / "buckets.py").read_text()) == shown.strip()


def test_predict_has_less_than_sixty_lines() -> None:
    assert len((PROGRAMS / "predict.py").read_text().splitlines()) < 60


@pytest.mark.parametrize("name", ALL)
def test_a_program_imports_what_its_bundle_requires(name: str) -> None:
    tree = ast.walk(ast.parse((PROGRAMS / name).read_text()))
    modules = {
        module.partition(".")[0]
        for one in tree
        if isinstance(one, ast.Import | ast.ImportFrom)
        for module in (
            [one.module] if isinstance(one, ast.ImportFrom) else [n.name for n in one.names]
        )
    }
    import sys

    foreign = modules - sys.stdlib_module_names - {"bundled", "predict", "numpy"}
    named = IMPORTED.get(Path(name).stem, ()) if name.startswith("engines/") else ()
    allowed = {MODULES.get(one, one) for one in named} | OF_INPUTS.get(name, set())
    assert foreign <= allowed
