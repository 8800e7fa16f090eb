"""Which slice of its inputs an ONNX operator needs, by the shapes that trial runs have shown."""

from collections.abc import Callable
from typing import Any

import numpy as np
import onnx

from tightrope.inputs.arrays import example_of
from tightrope.onnx.edit import STANDARD, attribute, copy_of
from tightrope.onnx.file import signature_of
from tightrope.onnx.session import run_all

ELEMENTWISE = ("Add", "Div", "Max", "Min", "Mul", "Pow", "Sub")
UNARY = (
    "Abs",
    "Cast",
    "Erf",
    "Gelu",
    "HardSigmoid",
    "HardSwish",
    "Identity",
    "Neg",
    "Relu",
    "Sigmoid",
    "Sqrt",
    "Tanh",
)
Node = onnx.NodeProto
# per input of an operator: the axis of which only the first row is read, None for all rows
Reads = list[int | None]
# tensor -> its shape in each trial
Shapes = dict[str, list[tuple[int, ...]]]
# [batch, sequence] of the trial runs; a size in a tensor that equals neither is constant
TRIALS = ((3, 7), (2, 11))


def needed(node: Node, axis: int, shapes: Shapes, producers: dict[str, Node]) -> Reads | None:
    """Return what an operator reads for the first row of its output's `axis`, None for all rows."""
    if node.domain not in STANDARD:
        return None
    if any(name and name not in shapes for name in [*node.input, *node.output]):
        return None
    if node.op_type in ELEMENTWISE:
        return [broadcast_axis(node, name, axis, shapes) for name in node.input]
    rule = RULES.get(node.op_type, unary if node.op_type in UNARY else None)
    return rule(node, axis, shapes, producers) if rule else None


def rank(name: str, shapes: Shapes) -> int:
    """Return the number of axes of a tensor."""
    return len(shapes[name][0])


def is_one(name: str, axis: int, shapes: Shapes) -> bool:
    """Return whether that axis has size 1 in every trial."""
    return all(shape[axis] == 1 for shape in shapes[name])


def broadcast_axis(node: Node, name: str, axis: int, shapes: Shapes) -> int | None:
    """Return the axis of an input that becomes `axis` of the output, None if it is broadcast."""
    if not name:
        return None
    own = axis - (rank(node.output[0], shapes) - rank(name, shapes))
    return None if own < 0 or is_one(name, own, shapes) else own


def unary(node: Node, axis: int, shapes: Shapes, producers: Any) -> Reads:
    """Rule for unary elementwise operators; the bounds of Clip are scalars."""
    return [axis, *[None] * (len(node.input) - 1)]


def along_another_axis(node: Node, axis: int, shapes: Shapes, producers: Any) -> Reads | None:
    """Rule for Softmax and LayerNormalization over a later axis: rows are independent."""
    over = attribute(node, "axis", -1) % rank(node.output[0], shapes)
    if over <= axis:
        return None
    return [axis, *(broadcast_axis(node, name, axis, shapes) for name in node.input[1:])]


def matmul(node: Node, axis: int, shapes: Shapes, producers: Any) -> Reads | None:
    """Rule for matrix products: rows of the product are rows of its first factor."""
    first, both = rank(node.input[0], shapes), min(rank(name, shapes) for name in node.input)
    return [first - 2, None] if both > 1 and axis == rank(node.output[0], shapes) - 2 else None


def transpose(node: Node, axis: int, shapes: Shapes, producers: Any) -> Reads:
    """Rule for transposes: the row moves to another axis."""
    backwards = range(rank(node.output[0], shapes))[::-1]
    return [attribute(node, "perm", list(backwards))[axis]]


def reshape(node: Node, axis: int, shapes: Shapes, producers: dict[str, Node]) -> Reads | None:
    """Rule for reshapes that keep batch and tokens as the first two axes, by their shape input."""
    shape = producers.get(node.input[1])
    if axis != 1 or shape is None or shape.op_type != "Concat" or len(shape.input) < 2:
        return None
    tokens = producers.get(shape.input[1])
    if tokens is None or tokens.op_type != "Shape":
        return None
    if (attribute(tokens, "start", 0), attribute(tokens, "end", None)) != (1, 2):
        return None
    pairs = zip(shapes[node.input[0]], shapes[node.output[0]], strict=True)
    kept = all(before[:2] == after[:2] for before, after in pairs)
    return [1, None] if kept and shapes[shape.input[0]][0] == (1,) else None


RULES: dict[str, Callable[[Node, int, Shapes, dict[str, Node]], Reads | None]] = {
    "Clip": unary,
    "LayerNormalization": along_another_axis,
    "MatMul": matmul,
    "Reshape": reshape,
    "Softmax": along_another_axis,
    "Transpose": transpose,
}


def shapes_seen(model: onnx.ModelProto) -> Shapes:
    """Return the shape of each tensor in both TRIALS; the file alone does not determine it.

    Raises ArtifactError where the model does not run.
    """
    copy = copy_of(model)
    names = [name for node in copy.graph.node for name in node.output if name]
    del copy.graph.output[:]
    copy.graph.output.extend(onnx.ValueInfoProto(name=name) for name in names)
    batches = [example_of(signature_of(model), *trial) for trial in TRIALS]
    given = [{name: array.shape for name, array in batch.items()} for batch in batches]
    constants = {tensor.name: tuple(tensor.dims) for tensor in copy.graph.initializer}
    found = [
        {name: np.shape(value) for name, value in zip(names, values, strict=True)}
        for values in run_all(copy, batches, threads=1)
    ]
    trials = [{**constants, **one, **seen} for one, seen in zip(given, found, strict=True)]
    return {name: [trial[name] for trial in trials] for name in trials[0]}
