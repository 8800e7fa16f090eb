"""Rows that nobody reads are not computed: of the last layer a classifier reads its first token.

The others are needed as keys and values of its attention only, so the rest of that layer (query,
scores, feed-forward) can be done for one row: five sixths of the weighted products of one layer,
14 % of those of an encoder of six. The outputs stay what they are.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper

FIRST = 0
ELEMENTWISE = ("Add", "Sub", "Mul", "Div", "Pow")
UNARY = ("Cast", "Erf", "Gelu", "Identity", "Neg", "Relu", "Sigmoid", "Sqrt", "Tanh")
Node = onnx.NodeProto
# for each input of an operator the axis of which only the first row is read, None for all of it
Reads = list[int | None]


def without_unread_rows(model: onnx.ModelProto) -> onnx.ModelProto:
    """A copy of the model in which operators compute the first row only, where no other is read.

    It starts at each Gather of index 0 and goes up as long as every reader wants that row alone.
    A model without such a place is given back as it is.
    """
    result = onnx.ModelProto()
    result.CopyFrom(model)
    graph = result.graph
    shapes = inferred_shapes(result)
    constants = {tensor.name: numpy_helper.to_array(tensor) for tensor in small(graph)}
    reduced = first_row_only(graph, shapes, constants)
    made = {output for number in reduced for output in graph.node[number].output}
    nodes: list[Node] = []
    slices: dict[tuple[str, int], str] = {}
    for number, node in enumerate(graph.node):
        for place, axis in enumerate(reduced.get(number, [])):
            name = node.input[place]
            if axis is None or name in made:
                continue
            if (name, axis) not in slices:
                slices[name, axis] = f"{name}_first_of_axis_{axis}"
                nodes.append(slice_of(graph, name, axis, slices[name, axis]))
            node.input[place] = slices[name, axis]
        if node.op_type == "Reshape" and number in reduced:
            nodes.append(shape_of_first_row(graph, node, constants))
        nodes.append(node)
    del graph.node[:]
    graph.node.extend(nodes)
    onnx.checker.check_model(result)
    return result


def first_row_only(
    graph: onnx.GraphProto, shapes: dict[str, list[int]], constants: dict[str, np.ndarray]
) -> dict[int, Reads]:
    """By the number of each operator that can do with the first row: what it reads of its inputs.

    Readers come before what they read: from the outputs up.
    """
    wanted: dict[str, set[int | None]] = {one.name: {None} for one in graph.output}
    producers = {name: node for node in graph.node for name in node.output}
    found: dict[int, Reads] = {}
    for number in reversed(range(len(graph.node))):
        node = graph.node[number]
        reads: Reads | None = None
        if node.op_type == "Gather" and reads_first(node, shapes, constants):
            reads = [1, None]
        elif len(node.output) == 1 and len(axes := wanted.get(node.output[0], set())) == 1:
            axis = next(iter(axes))
            if axis is not None:
                reads = needed(node, axis, shapes, producers)
        if reads is not None:
            found[number] = reads
        for place, name in enumerate(node.input):
            wanted.setdefault(name, set()).add(reads[place] if reads else None)
    made = {name for number in found for name in graph.node[number].output}
    # a Gather whose input is computed in full stays as it is
    gathers = [n for n in found if graph.node[n].op_type == "Gather"]
    return {
        n: reads for n, reads in found.items() if n not in gathers or graph.node[n].input[0] in made
    }


def reads_first(node: Node, shapes: dict[str, list[int]], constants: dict[str, np.ndarray]) -> bool:
    """Whether a Gather takes the first of axis 1, the tokens, where there may be more."""
    if shapes.get(node.input[0], [0, 1])[1:2] in ([], [1]):
        return False
    index = constants.get(node.input[1])
    axis = next((one.i for one in node.attribute if one.name == "axis"), 0)
    return axis == 1 and index is not None and index.ndim == 0 and int(index) == FIRST


def needed(
    node: Node, axis: int, shapes: dict[str, list[int]], producers: dict[str, Node]
) -> Reads | None:
    """What an operator reads for the first row of its output's `axis`, None where that is all."""
    if any(name and name not in shapes for name in [*node.input, *node.output]):
        return None
    rank = len(shapes[node.output[0]])
    if node.op_type in ELEMENTWISE:
        return [broadcast_axis(shapes[name], rank, axis) for name in node.input]
    rule = RULES.get(node.op_type, unary if node.op_type in UNARY else None)
    return rule(node, axis, rank, producers) if rule else None


def broadcast_axis(shape: list[int], rank: int, axis: int) -> int | None:
    """The axis of an input that becomes `axis` of the output, None where it is broadcast."""
    own = axis - (rank - len(shape))
    return None if own < 0 or shape[own] == 1 else own


def unary(node: Node, axis: int, rank: int, producers: Any) -> Reads:
    """Each number by itself."""
    return [axis]


def along_another_axis(node: Node, axis: int, rank: int, producers: Any) -> Reads | None:
    """Softmax and LayerNormalization of each row by itself."""
    over = next((one.i for one in node.attribute if one.name == "axis"), -1) % rank
    return [axis, *[None] * (len(node.input) - 1)] if over > axis else None


def matmul(node: Node, axis: int, rank: int, producers: Any) -> Reads | None:
    """Rows of a product are rows of its first factor."""
    return [axis, None] if axis == rank - 2 else None


def transpose(node: Node, axis: int, rank: int, producers: Any) -> Reads:
    """The same row under another number."""
    return [next(one.ints for one in node.attribute if one.name == "perm")[axis]]


def reshape(node: Node, axis: int, rank: int, producers: dict[str, Node]) -> Reads | None:
    """Where batch and tokens stay the first two axes, as the new shape says itself."""
    shape = producers.get(node.input[1])
    if axis != 1 or shape is None or shape.op_type != "Concat":
        return None
    tokens = producers.get(shape.input[1])
    if tokens is None or tokens.op_type != "Shape":
        return None
    part = {one.name: one.i for one in tokens.attribute}
    return [1, None] if (part.get("start"), part.get("end")) == (1, 2) else None


RULES: dict[str, Callable[[Node, int, int, dict[str, Node]], Reads | None]] = {
    "LayerNormalization": along_another_axis,
    "MatMul": matmul,
    "Reshape": reshape,
    "Softmax": along_another_axis,
    "Transpose": transpose,
}


def inferred_shapes(model: onnx.ModelProto) -> dict[str, list[int]]:
    """The shape of each tensor whose rank is known; 0 for a size that is not."""
    graph = onnx.shape_inference.infer_shapes(model, data_prop=True).graph
    shapes = {tensor.name: list(tensor.dims) for tensor in graph.initializer}
    for value in (*graph.input, *graph.output, *graph.value_info):
        if value.type.tensor_type.HasField("shape"):
            dims = value.type.tensor_type.shape.dim
            shapes[value.name] = [dim.dim_value for dim in dims]
    return shapes


def small(graph: onnx.GraphProto) -> list[onnx.TensorProto]:
    """Constants that may be indices or shapes."""
    return [tensor for tensor in graph.initializer if int(np.prod(tensor.dims)) <= 8]


def slice_of(graph: onnx.GraphProto, name: str, axis: int, target: str) -> Node:
    """An operator that takes the first of that axis and keeps the axis."""
    inputs = [name, *(constant(graph, value) for value in (FIRST, FIRST + 1, axis))]
    return helper.make_node("Slice", inputs, [target], name=target)


def shape_of_first_row(
    graph: onnx.GraphProto, node: Node, constants: dict[str, np.ndarray]
) -> Node:
    """The shape that a Reshape of one token has; the Reshape is changed to read it."""
    shape = next(one for one in graph.node if node.input[1] in one.output)
    target = f"{node.output[0]}_shape_of_first"
    inputs = [shape.input[0], constant(graph, 1), *shape.input[2:]]
    node.input[1] = target
    return helper.make_node("Concat", inputs, [target], name=target, axis=0)


def constant(graph: onnx.GraphProto, value: int) -> str:
    """The name of a constant [1] of that value in the graph."""
    name = f"tightrope_constant_{value}"
    if name not in {tensor.name for tensor in graph.initializer}:
        graph.initializer.append(numpy_helper.from_array(np.array([value], np.int64), name))
    return name
