"""The float32 model in an ONNX file that is quantized already: without Q/DQ, without half types."""

import numpy as np
import onnx
from onnx import GraphProto, NodeProto, TensorProto, helper, numpy_helper

from tightrope.errors import ArtifactError
from tightrope.onnx.edit import drop_unused_initializers, graphs_in
from tightrope.onnx.given_qdq import DEQUANTIZE, QUANTIZE, attribute, constants_of
from tightrope.onnx.implied_clip import implied_clip

FLOAT = TensorProto.FLOAT
HALVES = (TensorProto.FLOAT16, TensorProto.BFLOAT16)
# attributes that set the type of an output
TYPES = ("to", "dtype")


def in_float(model: onnx.ModelProto) -> onnx.ModelProto:
    """Return the model that was quantized, in float32: a copy of `model` without Q/DQ.

    Activations and weights in float bypass their Q/DQ, with what `implied_clip` finds in its place;
    weights and biases in integers or float8 are
    dequantized to constants. float16 and bfloat16 become float32. Raises ArtifactError naming the
    node for Q/DQ that is no pair.
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
    replace_nodes(made.graph, kept)
    drop_unused_initializers(made)
    return made


def with_activations_in_float(model: onnx.ModelProto) -> onnx.ModelProto:
    """Return a copy in which all that is quantized at run time bypasses its Q/DQ.

    DequantizeLinear of stored integers and float8 stays. Raises as `in_float` does.
    """
    made = onnx.ModelProto()
    made.CopyFrom(model)
    constants, producers = constants_of(made), producers_of(made)
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
            require_quantizer(node, producers)
            bypassed[node.output[0]] = bypassed[node.input[0]]
        else:
            kept.append(node)
    require_no_quantized_input(kept, producers)
    for inner in graphs_in(made.graph):
        for node in inner.node:
            node.input[:] = [bypassed.get(name, name) for name in node.input]
    ends = [one.name for one in made.graph.output if one.name in bypassed]
    kept += [helper.make_node("Identity", [bypassed[name]], [name]) for name in ends]
    replace_nodes(made.graph, kept)
    del made.graph.value_info[:]
    return made


def require_quantizer(node: NodeProto, producers: dict[str, NodeProto]) -> None:
    """Raise ArtifactError unless the input of a DequantizeLinear comes from a QuantizeLinear."""
    producer = producers.get(node.input[0])
    if producer is None or producer.op_type != QUANTIZE:
        kind = "a graph input" if producer is None else producer.op_type
        raise ArtifactError(
            f"DequantizeLinear {label(node)} reads {kind}: only constants and QuantizeLinear are "
            "supported before it; quantize with Q/DQ in pairs"
        )


def require_no_quantized_input(kept: list[NodeProto], producers: dict[str, NodeProto]) -> None:
    """Raise ArtifactError where a node that stays reads the output of a QuantizeLinear."""
    for node in kept:
        for name in node.input:
            if name in producers and producers[name].op_type == QUANTIZE:
                raise ArtifactError(
                    f"QuantizeLinear {label(producers[name])} is read by {node.op_type} "
                    f"{label(node)}: only DequantizeLinear is supported after it; quantize with "
                    "Q/DQ in pairs"
                )


def dequantized(node: NodeProto, constants: dict[str, TensorProto]) -> np.ndarray:
    """Return the float32 output of a DequantizeLinear whose inputs are constants.

    (values - zero-point) * scale, with one scale, one for each index of `axis`, or one for each
    block of `block_size` along it. Raises ArtifactError for a scale that is no constant.
    """
    names = [name for name in node.input if name]
    missing = [name for name in names if name not in constants]
    if missing:
        raise ArtifactError(
            f"DequantizeLinear {label(node)}: {missing[0]} is no constant; export it as one"
        )
    arrays = [numpy_helper.to_array(constants[name]).astype(np.float32) for name in names]
    values, *parameters = arrays
    axis, block = attribute(node, "axis", 1), attribute(node, "block_size", 0)
    scale, *zero = (spread(one, values.shape, axis, block) for one in parameters)
    found = (values - (zero[0] if zero else 0)) * scale
    return np.asarray(found, np.float32).reshape(values.shape)


def spread(parameter: np.ndarray, shape: tuple[int, ...], axis: int, block: int) -> np.ndarray:
    """Return scales or zero-points in a shape that broadcasts to the `shape` of the values."""
    if block:
        repeated = np.repeat(parameter, block, axis)
        return repeated.take(range(shape[axis]), axis)
    if parameter.size == 1:
        return parameter.reshape(())
    places = range(len(shape))
    return parameter.reshape([-1 if place == axis % len(shape) else 1 for place in places])


def in_float32(model: onnx.ModelProto) -> onnx.ModelProto:
    """Return a copy in which float16 and bfloat16 are float32, which holds all of their numbers."""
    made = onnx.ModelProto()
    made.CopyFrom(model)
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


def producers_of(model: onnx.ModelProto) -> dict[str, NodeProto]:
    """Return the node that produces each tensor."""
    return {name: node for node in model.graph.node for name in node.output}


def replace_nodes(graph: GraphProto, nodes: list[NodeProto]) -> None:
    """Make `nodes` the nodes of the graph."""
    copies = [NodeProto.FromString(node.SerializeToString()) for node in nodes]
    del graph.node[:]
    graph.node.extend(copies)


def label(node: NodeProto) -> str:
    """Return the name of a node, or of its output where it has none."""
    return node.name or node.output[0]
