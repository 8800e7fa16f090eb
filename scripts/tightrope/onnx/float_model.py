"""The float32 model in an ONNX file that is quantized already: without Q/DQ, without half types."""

from collections.abc import Iterator, Mapping

import numpy as np
import onnx
from onnx import NodeProto, TensorProto, helper, numpy_helper

from tightrope.errors import ArtifactError, TightropeError
from tightrope.onnx.edit import attribute, copy_of, dequantized, graphs_in, label, set_operators

QUANTIZE, DEQUANTIZE = PAIR = ("QuantizeLinear", "DequantizeLinear")
# operators that compute in integers themselves: onnxruntime's QOperator format, dynamic ranges
INTEGER_OPERATORS = ("ConvInteger", "MatMulInteger", "DynamicQuantize", "QLinear", "QGemm", "QAtt")
OF_TENSORRT = "TRT_"
Producers = Mapping[str, NodeProto]
Constants = Mapping[str, TensorProto]
SIX = 6.0
# operators before a Relu; not those of an attention mask, whose range is [0, 0] without padding
BEFORE_RELU = (
    *("Add", "BatchNormalization", "Conv", "ConvTranspose", "Gemm", "GroupNormalization"),
    *("InstanceNormalization", "LayerNormalization", "MatMul", "Sum"),
)
# outputs that are never negative, and operators whose output is not if their inputs are not
NEVER_NEGATIVE = ("Abs", "Exp", "HardSigmoid", "Relu", "Sigmoid", "Softmax", "Softplus")
OF_ALL_INPUTS = ("Add", "Concat", "Mul")
OF_FIRST_INPUT = (
    *("AveragePool", "Cast", "Flatten", "Gather", "GlobalAveragePool", "GlobalMaxPool", "Identity"),
    *("MaxPool", "ReduceMax", "ReduceMean", "Reshape", "Slice", "Squeeze", "Transpose"),
    "Unsqueeze",
)
FLOAT = TensorProto.FLOAT
HALVES = (TensorProto.FLOAT16, TensorProto.BFLOAT16)
# attributes that set the type of an output
TYPES = ("to", "dtype")


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


def implied_clip(
    quantizer: NodeProto, source: str, constants: Constants, producers: Producers
) -> tuple[NodeProto, list[TensorProto]] | None:
    """Return the operator on `source` in the place of a QuantizeLinear's range, and its bounds.

    Clip(0, 6) where the range ends at 6, else Relu. None where the range has negative values, where
    the quantized tensor has none anyway, and where its producer has no Relu after it.
    """
    data = quantizer.input[0]
    producer = producers.get(data)
    if producer is None or producer.op_type not in BEFORE_RELU:
        return None
    if not starts_at_zero(quantizer, constants):
        return None
    output, top = f"{quantizer.output[0]}_clipped", end_of(quantizer, constants)
    if np.isclose(top, SIX, rtol=1e-3):
        kind = constants[quantizer.input[1]].data_type
        ends = {f"{output}_low": 0.0, f"{output}_high": SIX}
        bounds = [helper.make_tensor(name, kind, [], [end]) for name, end in ends.items()]
        return helper.make_node("Clip", [source, *ends], [output], output), bounds
    if is_never_negative(data, constants, producers):
        return None
    return helper.make_node("Relu", [source], [output], output), []


def starts_at_zero(quantizer: NodeProto, constants: Constants) -> bool:
    """Return whether 0 is the least number that a QuantizeLinear with integers can give."""
    zero = zero_point(quantizer, constants)
    return zero is not None and bool((zero == np.iinfo(zero.dtype).min).all())


def end_of(quantizer: NodeProto, constants: Constants) -> float:
    """Return the greatest number that a QuantizeLinear can give, NaN where it is not known."""
    zero, name = zero_point(quantizer, constants), quantizer.input[1]
    if zero is None or name not in constants:
        return float("nan")
    scale = numpy_helper.to_array(constants[name]).astype(np.float32)
    return float(((np.iinfo(zero.dtype).max - zero.astype(np.float32)) * scale).max())


def zero_point(quantizer: NodeProto, constants: Constants) -> np.ndarray | None:
    """Return the zero-point of a QuantizeLinear, None where it is no constant integer."""
    name = quantizer.input[2] if len(quantizer.input) > 2 else ""
    if not name:
        kind = attribute(quantizer, "output_dtype", 0) or TensorProto.UINT8
        found = np.zeros((), helper.tensor_dtype_to_np_dtype(kind))
    elif name in constants:
        found = numpy_helper.to_array(constants[name])
    else:
        return None
    return found if np.issubdtype(found.dtype, np.integer) else None


def is_never_negative(name: str, constants: Constants, producers: Producers) -> bool:
    """Return whether the operators and Q/DQ before a tensor let no negative value through."""
    node = producers.get(name)
    if node is None:
        return False
    if node.op_type in NEVER_NEGATIVE:
        return True
    if node.op_type == QUANTIZE and starts_at_zero(node, constants):
        return True
    if node.op_type in (*OF_FIRST_INPUT, QUANTIZE, DEQUANTIZE):
        return is_never_negative(node.input[0], constants, producers)
    return node.op_type in OF_ALL_INPUTS and all(
        is_never_negative(one, constants, producers) for one in node.input
    )


def in_float(model: onnx.ModelProto) -> onnx.ModelProto:
    """Return the model that was quantized, in float32: a copy of `model` without Q/DQ.

    Activations and weights in float bypass their Q/DQ, with what `implied_clip` finds in its place;
    weights and biases in integers or float8 are dequantized to constants. float16 and bfloat16
    become float32. Raises ArtifactError naming the node for Q/DQ that is no pair.
    """
    made = in_float32(with_activations_in_float(model))
    constants = constants_of(made)
    kept = []
    for node in made.graph.node:
        if node.op_type != DEQUANTIZE:
            kept.append(node)
            continue
        values = dequantized(node, constants)
        made.graph.initializer.append(numpy_helper.from_array(values, node.output[0]))
    set_operators(made, kept)
    return made


def with_activations_in_float(model: onnx.ModelProto) -> onnx.ModelProto:
    """Return a copy in which all that is quantized at run time bypasses its Q/DQ.

    DequantizeLinear of stored integers and float8 stays. Raises as `in_float` does.
    """
    made = copy_of(model)
    constants = constants_of(made)
    producers = {name: node for node in made.graph.node for name in node.output}
    # for the output of each node that is left out, the tensor in its place
    bypassed: dict[str, str] = {}
    kept = []
    for node in made.graph.node:
        if node.op_type == QUANTIZE:
            source = bypassed.get(node.input[0], node.input[0])
            if clip := implied_clip(node, source, constants, producers):
                source = clip[0].output[0]
                kept.append(clip[0])
                made.graph.initializer.extend(clip[1])
            bypassed[node.output[0]] = source
        elif node.op_type == DEQUANTIZE and node.input[0] not in constants:
            producer = producers.get(node.input[0])
            if producer is None or producer.op_type != QUANTIZE:
                kind = "a graph input" if producer is None else producer.op_type
                raise ArtifactError(
                    f"DequantizeLinear {label(node)} reads {kind}: only constants and "
                    "QuantizeLinear are supported before it; quantize with Q/DQ in pairs"
                )
            bypassed[node.output[0]] = bypassed[node.input[0]]
        else:
            kept.append(node)
    for reader, name in ((node, name) for node in kept for name in node.input):
        if name in producers and producers[name].op_type == QUANTIZE:
            words = f"{label(producers[name])} is read by {reader.op_type} {label(reader)}"
            raise ArtifactError(
                f"QuantizeLinear {words}: only DequantizeLinear is supported after it; quantize "
                "with Q/DQ in pairs"
            )
    for inner in graphs_in(made.graph):
        for node in inner.node:
            node.input[:] = [bypassed.get(name, name) for name in node.input]
    ends = [one.name for one in made.graph.output if one.name in bypassed]
    kept += [helper.make_node("Identity", [bypassed[name]], [name]) for name in ends]
    set_operators(made, kept)
    return made


def in_float32(model: onnx.ModelProto) -> onnx.ModelProto:
    """Return a copy in which float16 and bfloat16 are float32, which holds all of their numbers."""
    made = copy_of(model)
    del made.graph.value_info[:]
    for graph in graphs_in(made.graph):
        for tensor in graph.initializer:
            widen(tensor)
        for value in (*graph.input, *graph.output, *graph.value_info):
            if value.type.tensor_type.elem_type in HALVES:
                value.type.tensor_type.elem_type = FLOAT
        for part in (part for node in graph.node for part in node.attribute):
            if part.type == onnx.AttributeProto.TENSOR:
                widen(part.t)
            elif part.name in TYPES and part.i in HALVES:
                part.i = FLOAT
    return made


def has_halves(model: onnx.ModelProto) -> bool:
    """Return whether constants or casts of the model are float16 or bfloat16."""
    graphs = list(graphs_in(model.graph))
    kinds = {tensor.data_type for tensor in constants_of(model).values()}
    parts = (part for graph in graphs for node in graph.node for part in node.attribute)
    return bool(kinds & set(HALVES)) or any(p.name in TYPES and p.i in HALVES for p in parts)


def widen(tensor: TensorProto) -> None:
    """Convert a float16 or bfloat16 constant to float32."""
    if tensor.data_type in HALVES:
        values = numpy_helper.to_array(tensor).astype(np.float32)
        tensor.CopyFrom(numpy_helper.from_array(values, tensor.name))
