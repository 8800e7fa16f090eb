"""Number formats of an ONNX graph: of stored tensors and of each operator's computation."""

import math
import re
from collections.abc import Iterable, Iterator

import onnx
from onnx import TensorProto

from tightrope.report.graphs.record import OTHER
from tightrope.runtimes.executed import is_product

FORMATS = {"FLOAT": "fp32", "FLOAT16": "fp16", "BFLOAT16": "bf16"}
QUANTIZE = ("QuantizeLinear", "DynamicQuantizeLinear")
DEQUANTIZE = "DequantizeLinear"
CONVERSIONS = (*QUANTIZE, DEQUANTIZE)
BITS = {"FLOAT": 32, "DOUBLE": 64, "BOOL": 8, "UNDEFINED": 0, "STRING": 0}
# the third operand of a matrix product or convolution is a bias, which int8 keeps in more bits
OPERANDS = 2
Types = dict[str, int]


def format_of(kind: int | None) -> str:
    """Return the name of an ONNX data type: fp32, fp16, bf16, fp8, int8, int4 etc., else OTHER."""
    name = TensorProto.DataType.Name(kind or 0)
    if name.startswith(("FLOAT8", "FLOAT6", "FLOAT4")):
        return f"fp{name[5]}"
    if quantized := re.fullmatch(r"U?INT([248])", name):
        return f"int{quantized[1]}"
    return FORMATS.get(name, OTHER)


def precisions(graph: onnx.GraphProto) -> list[str]:
    """Return the format in which each operator of `graph` computes, in node order.

    An operator between Q/DQ that runtimes fuse has the quantized format: a matrix product or
    convolution if all its operands come from DequantizeLinear, any other operator if also all its
    results go to QuantizeLinear. Otherwise it has the format of its operands, and Q/DQ that of the
    quantized side.
    """
    values = (*graph.value_info, *graph.input, *graph.output)
    types = {value.name: value.type.tensor_type.elem_type for value in values}
    types |= {tensor.name: tensor.data_type for tensor in graph.initializer}
    dequantized = {
        node.output[0]: types.get(node.input[0])
        for node in graph.node
        if node.op_type == DEQUANTIZE
    }
    consumers: dict[str, set[str]] = {output.name: {""} for output in graph.output}
    for node in graph.node:
        for name in node.input:
            consumers.setdefault(name, set()).add(node.op_type)
    return [precision_of(node, types, dequantized, consumers) for node in graph.node]


def precision_of(
    node: onnx.NodeProto,
    types: Types,
    dequantized: dict[str, int | None],
    consumers: dict[str, set[str]],
) -> str:
    """Return the format of one operator.

    `consumers` holds the operator types that consume each tensor, "" for graph outputs.
    """
    if node.op_type in CONVERSIONS:
        side = node.input[0] if node.op_type == DEQUANTIZE else node.output[0]
        return format_of(types.get(side))
    inputs = [name for name in node.input if name]
    operands = inputs[:OPERANDS] if is_product(node.op_type) else inputs
    floats = [name for name in operands if name in dequantized or is_float(types.get(name))]
    fused = is_product(node.op_type) or all(
        consumers.get(name, set()) <= set(QUANTIZE) for name in node.output
    )
    if fused and floats and all(name in dequantized for name in floats):
        return format_of(dequantized[floats[0]])
    # the first quantized format of its tensors, else the first known format
    formats = [format_of(types.get(name)) for name in (*inputs, *node.output)]
    quantized = [kind for kind in formats if re.fullmatch(r"int[248]|fp[468]", kind)]
    return next((kind for kind in [*quantized, *formats] if kind != OTHER), OTHER)


def is_float(kind: int | None) -> bool:
    """Return whether an ONNX data type is floating-point."""
    return "FLOAT" in TensorProto.DataType.Name(kind or 0) or kind == TensorProto.DOUBLE


def parameters_of(graph: onnx.GraphProto) -> dict[str, onnx.TensorProto]:
    """Return the parameters of `graph` by name: constants of rank 1 or higher used in computation.

    They are floating-point or quantized; scales and zero-points of Q/DQ and constant shapes are not
    parameters.
    """
    scales: set[str] = set()
    dequantized: set[str] = set()
    for node in all_nodes(graph):
        if node.op_type in CONVERSIONS:
            scales.update(node.input[1:])
        if node.op_type == DEQUANTIZE:
            dequantized.add(node.input[0])
    parameters = {}
    for name, tensor in constants(graph):
        computed = is_float(tensor.data_type) or format_of(tensor.data_type) != OTHER
        if tensor.dims and name not in scales and (computed or name in dequantized):
            parameters[name] = tensor
    return parameters


def constants(graph: onnx.GraphProto) -> Iterator[tuple[str, onnx.TensorProto]]:
    """Yield initializers by name, and values of Constant by their output's; of subgraphs too."""
    yield from ((tensor.name, tensor) for tensor in graph.initializer)
    for node in graph.node:
        for attribute in node.attribute if node.op_type == "Constant" else ():
            if attribute.HasField("t"):
                yield node.output[0], attribute.t
    for inner in inner_graphs(graph.node):
        yield from constants(inner)


def total(tensors: Iterable[onnx.TensorProto]) -> dict[str, int]:
    """Return `parameters`, the number of values in the tensors, and `weight_bytes`, their size.

    The size is the packed one, from shape and type; 0 for strings.
    """
    parameters = weight_bytes = 0
    for tensor in tensors:
        name = TensorProto.DataType.Name(tensor.data_type)
        digits = re.search(r"\d+", name)
        bits = BITS[name] if name in BITS else int(digits[0]) if digits else 0
        parameters += math.prod(tensor.dims)
        weight_bytes += math.ceil(math.prod(tensor.dims) * bits / 8)
    return {"parameters": parameters, "weight_bytes": weight_bytes}


def inner_graphs(nodes: Iterable[onnx.NodeProto]) -> Iterator[onnx.GraphProto]:
    """Yield the subgraphs of nodes: branches of If, the body of Loop or Scan."""
    for attribute in (one for node in nodes for one in node.attribute):
        if attribute.HasField("g"):
            yield attribute.g
        yield from attribute.graphs


def all_nodes(graph: onnx.GraphProto) -> Iterator[onnx.NodeProto]:
    """Yield every node, including those of subgraphs."""
    yield from graph.node
    for inner in inner_graphs(graph.node):
        yield from all_nodes(inner)
