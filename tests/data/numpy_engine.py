"""ONNX's reference evaluator: each operator in numpy."""

from pathlib import Path
from typing import Any

from onnx.reference import ReferenceEvaluator
from tightrope.engine_table import Engine
from tightrope.onnx.file import load_onnx, save_onnx
from tightrope.runtimes.executed import counted

SPEC = Engine(
    precisions={"cpu": ("fp32",)},
    libraries=("onnx",),
    source="onnx",
    about="ONNX's reference evaluator",
    colour=("#777", "#999"),
)


def build(
    source: Path, target: Path, *, precision: str, device: str, threads: int, options: Any
) -> Any:
    """Put the ONNX file `source` into folder `target`."""
    model = load_onnx(source)
    executed = counted((node.op_type, "fp32") for node in model.graph.node)
    save_onnx(model, target / "model.onnx")
    return {"format": "onnx", "executed": executed}


def load(path: Path, *, precision: str, device: str, threads: int, options: Any) -> Any:
    """`run(inputs) -> float32 logits [batch, classes]` for any batch and sequence."""
    evaluator = ReferenceEvaluator(load_onnx(path / "model.onnx"))
    return lambda inputs: evaluator.run(None, inputs)[0]
