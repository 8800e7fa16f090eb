"""Find the Q/DQ of an ONNX file that is quantized already, and compare it with what was said."""

from collections.abc import Iterator

import onnx
from onnx import NodeProto, TensorProto, helper

from tightrope.errors import TightropeError
from tightrope.onnx.edit import graphs_in

QUANTIZE, DEQUANTIZE = PAIR = ("QuantizeLinear", "DequantizeLinear")
# operators that compute in integers themselves: onnxruntime's QOperator format, dynamic ranges
INTEGER_OPERATORS = ("ConvInteger", "MatMulInteger", "DynamicQuantize", "QLinear", "QGemm", "QAtt")
OF_TENSORRT = "TRT_"


def is_quantized(model: onnx.ModelProto) -> bool:
    """Return whether the model has Q/DQ, in branches and loops too."""
    return any(node.op_type in PAIR for node in all_nodes(model))


def require_as_said(model: onnx.ModelProto, source: str, *, quantized: bool) -> None:
    """Raise TightropeError naming `source` unless it has Q/DQ exactly where it is `quantized`.

    Also where Q/DQ stands in a form that is not supported: integer operators, operators of TensorRT
    alone, or inside a branch or loop.
    """
    found = is_quantized(model)
    kinds = [node.op_type for node in all_nodes(model)]
    if custom := [kind for kind in kinds if kind.startswith(OF_TENSORRT)]:
        raise TightropeError(
            f"{source}: {custom[0]} is an operator of TensorRT alone; export with ONNX's own "
            "QuantizeLinear and DequantizeLinear, in opset 19 or later for E4M3"
        )
    if integer := [kind for kind in kinds if kind.startswith(INTEGER_OPERATORS)]:
        raise TightropeError(
            f"{source}: {integer[0]} computes in integers itself; only Q/DQ is supported: quantize "
            "statically, with onnxruntime by quant_format=QuantFormat.QDQ, or give the float file"
        )
    if found and not quantized:
        raise TightropeError(
            f"{source}: is quantized already (it has QuantizeLinear or DequantizeLinear); set the "
            "model's key `quantized: true` to run it as it is, or give the float file"
        )
    if quantized and not found:
        raise TightropeError(
            f"{source}: has no QuantizeLinear or DequantizeLinear; remove `quantized`, and this "
            "project quantizes it"
        )
    if found and not any(node.op_type in PAIR for node in model.graph.node):
        raise TightropeError(
            f"{source}: not supported: Q/DQ inside a branch or loop; export without them"
        )


def all_nodes(model: onnx.ModelProto) -> Iterator[NodeProto]:
    """Yield the nodes of the graph and of its branches and loops."""
    return (node for graph in graphs_in(model.graph) for node in graph.node)


def constants_of(model: onnx.ModelProto) -> dict[str, TensorProto]:
    """Return the constants of the graph by name: initializers and tensors of Constant nodes."""
    nodes = (node for node in model.graph.node if node.op_type == "Constant")
    inside = {
        node.output[0]: part.t for node in nodes for part in node.attribute if part.name == "value"
    }
    return inside | {tensor.name: tensor for tensor in model.graph.initializer}


def attribute(node: NodeProto, name: str, default: int) -> int:
    """Return an integer attribute of a node, `default` where it is not set."""
    return next((helper.get_attribute_value(a) for a in node.attribute if a.name == name), default)
