"""Fold constant factors, such as the scale of attention, into the linear layers before them."""

import itertools
from collections import Counter
from collections.abc import Mapping

import numpy as np
import onnx
from onnx import TensorProto, numpy_helper

from tightrope.onnx.edit import copy_of, set_operators
from tightrope.onnx.weights import is_plain

# they move values without changing them
MOVES = ("Reshape", "Transpose")


def with_scales_folded(model: onnx.ModelProto) -> onnx.ModelProto:
    """Return a copy of `model` without multiplications by one number behind a linear layer.

    The weights and the bias of the layer are multiplied instead. Operators that only move values
    may lie between the two. Weights that other operators read are copied.
    """
    made = copy_of(model)
    graph = made.graph
    constants = {one.name: one for one in graph.initializer if one.data_type == TensorProto.FLOAT}
    producers = {name: node for node in graph.node for name in node.output}
    reads = Counter(name for node in graph.node for name in node.input)
    given = {one.name for one in graph.output}
    reads.update(given)
    replaced: dict[str, str] = {}
    copies: dict[tuple[str, float], str] = {}
    kept = []
    for node in graph.node:
        node.input[:] = [replaced.get(name, name) for name in node.input]
        found = scaled_layer(node, producers, constants, reads)
        if found is None or node.output[0] in given:
            kept.append(node)
            continue
        tensor, factor, readers = found
        for reader, place in readers:
            key = reader.input[place], factor
            if key not in copies:
                copies[key] = scaled_copy(graph, constants[key[0]], factor)
            reader.input[place] = copies[key]
        replaced[node.output[0]] = tensor
    set_operators(made, kept)
    return made


def scaled_layer(
    node: onnx.NodeProto,
    producers: Mapping[str, onnx.NodeProto],
    constants: Mapping[str, TensorProto],
    reads: Mapping[str, int],
) -> tuple[str, float, list[tuple[onnx.NodeProto, int]]] | None:
    """Return what a Mul scales: its tensor, the factor, and where the layer reads its constants.

    None where `node` is no Mul by one number, or where what it scales is no linear layer that is
    read here alone.
    """
    if node.op_type != "Mul":
        return None
    # one number, so that the product has the shape of the other operand
    numbers = [
        one for one in node.input if one in constants and list(constants[one].dims) in ([], [1])
    ]
    if len(numbers) != 1:
        return None
    (tensor,) = (one for one in node.input if one != numbers[0])
    factor = float(numpy_helper.to_array(constants[numbers[0]]).item())
    name = tensor
    while reads[name] == 1 and name in producers and producers[name].op_type in MOVES:
        name = producers[name].input[0]
    readers = constants_of_layer(name, producers, constants, reads)
    return (tensor, factor, readers) if readers else None


def constants_of_layer(
    name: str,
    producers: Mapping[str, onnx.NodeProto],
    constants: Mapping[str, TensorProto],
    reads: Mapping[str, int],
) -> list[tuple[onnx.NodeProto, int]]:
    """Return (operator, place of the input) of weight and bias of the layer that makes `name`."""
    found = []
    layer = producers.get(name) if reads[name] == 1 else None
    if layer is not None and layer.op_type == "Add":
        biases = [place for place, one in enumerate(layer.input) if one in constants]
        if len(biases) != 1:
            return []
        found.append((layer, biases[0]))
        name = layer.input[1 - biases[0]]
        layer = producers.get(name) if reads[name] == 1 else None
        if layer is None or layer.op_type != "MatMul":
            return []
    if layer is None or layer.op_type not in ("MatMul", "Gemm") or not is_plain(layer):
        return []
    places = range(1, len(layer.input))
    if not all(layer.input[place] in constants for place in places):
        return []
    return [*found, *((layer, place) for place in places)]


def scaled_copy(graph: onnx.GraphProto, tensor: TensorProto, factor: float) -> str:
    """Add `tensor` times `factor` to the graph; return its name."""
    values = numpy_helper.to_array(tensor) * np.float32(factor)
    known = {one.name for one in graph.initializer}
    names = (f"{tensor.name}_scaled{number or ''}" for number in itertools.count())
    name = next(name for name in names if name not in known)
    graph.initializer.append(numpy_helper.from_array(values, name))
    return name
