"""How many parameters an ONNX graph has, and how many bytes they take."""

import math
from collections.abc import Iterable

import onnx

from tightrope.report.graphs.formats import CONVERSIONS, DEQUANTIZE, format_of, is_float, size_bytes
from tightrope.report.graphs.names import OTHER
from tightrope.report.graphs.without_weights import all_nodes, inner_graphs


def parameters_of(graph: onnx.GraphProto) -> dict[str, onnx.TensorProto]:
    """The parameters of `graph` by name: constants of at least one axis that are computed with.

    Floating-point and quantized numbers; scales and zero-points of Q/DQ and constants of shapes
    are none.
    """
    scales: set[str] = set()
    dequantized: set[str] = set()
    for node in all_nodes(graph):
        if node.op_type in CONVERSIONS:
            scales.update(node.input[1:])
        if node.op_type == DEQUANTIZE:
            dequantized.add(node.input[0])
    found = {}
    for tensor in constants(graph):
        computed = is_float(tensor.data_type) or format_of(tensor.data_type) != OTHER
        if tensor.dims and tensor.name not in scales and (computed or tensor.name in dequantized):
            found[tensor.name] = tensor
    return found


def constants(graph: onnx.GraphProto) -> Iterable[onnx.TensorProto]:
    """Initializers, and the values of Constant under the name of their output."""
    yield from graph.initializer
    for node in graph.node:
        for attribute in node.attribute if node.op_type == "Constant" else ():
            if attribute.HasField("t"):
                tensor = onnx.TensorProto(data_type=attribute.t.data_type, name=node.output[0])
                tensor.dims.extend(attribute.t.dims)
                yield tensor
    for inner in inner_graphs(graph):
        yield from constants(inner)


def total(tensors: Iterable[onnx.TensorProto]) -> dict[str, int]:
    """`parameters`, how many numbers these tensors hold, and `weight_bytes`, what they take."""
    known = list(tensors)
    return {
        "parameters": sum(math.prod(tensor.dims) for tensor in known),
        "weight_bytes": sum(size_bytes(tensor) for tensor in known),
    }
