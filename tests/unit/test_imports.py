"""What each script loads before it begins: seconds that every one of its processes pays."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest
import tightrope
from tiny_model import TinyModel

ROOT = Path(tightrope.__file__).parents[1]
# the runtimes are imported by the engine's module, in the child that builds or runs it
HEAVY = {
    "torch",
    "transformers",
    "torchao",
    "scipy",
    "sklearn",
    "pandas",
    "sympy",
    "PIL",
    "onnx",
    "onnxruntime",
    "onnxslim",
    "openvino",
    "nncf",
    "tensorrt",
    "tvm",
}
TRAINING = {"torch", "transformers", "PIL"}
MAY_IMPORT = {
    "audit_variant": {"onnx"},
    "export_onnx": {"onnx", "torch"},
    "measure_costs": {"onnx"},
    "measure_training": TRAINING,
    "quantize_onnx": {"onnx"},
    "describe_graph": {"onnx"},
    "run_teacher": TRAINING,
    "search_operators": {"onnx"},
    "simplify_onnx": {"onnx", "torch"},
    "train_model": TRAINING,
}
SCRIPTS = sorted(path.stem for path in ROOT.glob("*.py"))


def imported_by(*scripts: str) -> set[str]:
    """The large libraries that a process has after what these scripts import."""
    lines = {
        ast.unparse(one)
        for script in scripts
        for one in ast.parse((ROOT / f"{script}.py").read_text()).body
        if isinstance(one, ast.Import | ast.ImportFrom)
    }
    code = "\n".join([*lines, "import sys", "print(*[n for n, m in sys.modules.items() if m])"])
    words = [sys.executable, "-c", code]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=True)
    return HEAVY & set(done.stdout.split())


@pytest.mark.parametrize("script", MAY_IMPORT)
def test_a_script_imports_no_library_that_it_does_not_need(script: str) -> None:
    assert imported_by(script) == MAY_IMPORT[script]


def test_the_other_scripts_import_none() -> None:
    assert imported_by(*set(SCRIPTS) - set(MAY_IMPORT)) == set()


def test_a_checkpoint_is_loaded_without_libraries_that_no_classifier_needs(tiny: TinyModel) -> None:
    code = (
        "import sys, pathlib, torch; from tightrope.model.module import load_module, UNUSED\n"
        f"load_module(pathlib.Path({str(tiny.checkpoint.parent)!r}), torch.float32)\n"
        "print(*[name for name in UNUSED if name in sys.modules])\n"
        "import scipy, torchao\n"
    )
    words = [sys.executable, "-c", code]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.split() == []
