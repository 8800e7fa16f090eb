"""Torch-TensorRT's names and parameters are spelt as its wheel spells them, seen without it."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

LIST = Path(__file__).parents[3] / "data" / "torch-tensorrt-names.txt"
NAMES = {line for line in LIST.read_text().splitlines() if not line.startswith("#")}
PACKAGE = "torch_tensorrt"


def wrong_names(source: str) -> list[str]:
    """The names of the package in the source of a module that are not in the list."""
    tree = ast.parse(source)
    imported = {
        one.name: f"{node.module}.{one.name}"
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith(PACKAGE)
        for one in node.names
    }
    used = set(imported.values())
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            name = imported.get(ast.unparse(node.func), ast.unparse(node.func))
            if name.startswith(f"{PACKAGE}."):
                used |= {name, *(f"{name}({one.arg})" for one in node.keywords)}
    return sorted(used - NAMES)


def modules(repository: Path) -> Iterator[Path]:
    for path in sorted((repository / "scripts").rglob("*.py")):
        if f"import {PACKAGE}" in path.read_text():
            yield path


def test_every_name_of_torch_tensorrt_in_the_scripts_is_one_of_its_wheel(
    repository: Path,
) -> None:
    (path,) = modules(repository)
    assert path.name == "torch_tensorrt.py"
    assert wrong_names(path.read_text()) == []


@pytest.mark.parametrize(
    ("line", "name"),
    [
        (
            "torch_tensorrt.dynamo.compile(p, enabled_precisions={1})",
            "torch_tensorrt.dynamo.compile(enabled_precisions)",
        ),
        ("torch_tensorrt.dynamo.export(p)", "torch_tensorrt.dynamo.export"),
        ("from torch_tensorrt.runtime import graphs", "torch_tensorrt.runtime.graphs"),
        (
            "from torch_tensorrt.runtime import set_cudagraphs_mode\nset_cudagraphs_mode(on=True)",
            "torch_tensorrt.runtime.set_cudagraphs_mode(on)",
        ),
    ],
)
def test_a_name_or_parameter_that_it_does_not_have_is_found(line: str, name: str) -> None:
    assert wrong_names(f"import torch_tensorrt\n{line}\n") == [name]


def test_masks_are_not_made_causal(repository: Path) -> None:
    """The default of Torch-TensorRT takes every mask for that of a decoder."""
    (path,) = modules(repository)
    assert "attn_bias_is_causal=False" in path.read_text()
