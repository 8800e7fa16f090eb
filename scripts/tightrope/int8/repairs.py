"""Repair a quantized model without training: SmoothQuant and bias correction."""

from typing import Any

import numpy as np
import onnx
from onnx import helper

from tightrope.errors import TightropeError
from tightrope.onnx.edit import (
    add_constant,
    constant_of,
    copy_of,
    dequantized_weight,
    drop_unused_initializers,
    place_of,
    rows_of,
    weighted_nodes,
)

Ranges = dict[str, list[float]]
Channels = dict[str, dict[str, list[float]]]
# a channel with values below this counts as empty and is not scaled
SMALLEST = 1e-5
SMOOTHED = "_smoothed"
# index of the bias among the inputs of an operator
BIAS = 2


def smoothed(
    model: onnx.ModelProto, ranges: Ranges, channels: Channels, nodes: list[str], *, strength: float
) -> tuple[onnx.ModelProto, Ranges]:
    """Apply SmoothQuant: return `model` with activation outliers moved into weights, and ranges.

    With s = max|x|^strength / max|w|^(1 - strength), each input channel of the operators `nodes` is
    divided by s and the matching row of the weights is multiplied by s, so outputs stay the same
    (Xiao et al. 2023, "SmoothQuant", equation 4). The new ranges are minmax. Convolutions stay as
    they are. Raises TightropeError where `channels` has no bounds of an input, as in an imported
    cache.
    """
    made = copy_of(model)
    ranges = dict(ranges)
    every = [node for node in weighted_nodes(made) if node.op_type != "Conv"]
    chosen = [node for node in every if node.name in nodes]
    for name in dict.fromkeys(node.input[0] for node in chosen):
        if name not in channels:
            raise TightropeError(f"no bounds of the channels of {name}: calibrate for SmoothQuant")
        # all consumers, so that the factors do not depend on the choice of `nodes`
        consumers = [node for node in every if node.input[0] == name]
        low, high = (np.array(channels[name][end]) for end in ("low", "high"))
        weights = [rows_of(node, constant_of(made, node.input[1])) for node in consumers]
        largest = np.max([np.abs(one).max(axis=1) for one in weights], axis=0)
        scale = smoothing(np.maximum(np.abs(low), np.abs(high)), largest, strength)
        multiplied = f"{name}{SMOOTHED}"
        consumers = [node for node in chosen if node.input[0] == name]
        inputs = [name, add_constant(made, f"{multiplied}_factors", 1 / scale)]
        multiply = helper.make_node("Mul", inputs, [multiplied], name=multiplied)
        made.graph.node.insert(place_of(made, consumers[0]), multiply)
        for node in consumers:
            node.input[0] = multiplied
            scaled = rows_of(node, rows_of(node, constant_of(made, node.input[1])) * scale[:, None])
            # a weight may be shared by operators with other inputs
            node.input[1] = add_constant(made, f"{node.name}.weight{SMOOTHED}", scaled)
        ranges[multiplied] = [float((low / scale).min()), float((high / scale).max())]
    drop_unused_initializers(made)
    return made, ranges


def smoothing(activations: np.ndarray, weights: np.ndarray, strength: float) -> np.ndarray:
    """Return SmoothQuant's factor per channel from the largest absolute values."""
    empty = (activations < SMALLEST) | (weights < SMALLEST)
    one = np.maximum(activations, SMALLEST) ** strength
    other = np.maximum(weights, SMALLEST) ** (1 - strength)
    return np.where(empty, 1.0, one / other)


def corrected_biases(
    quantized: onnx.ModelProto, original: onnx.ModelProto, channels: Channels
) -> None:
    """Correct the mean output error that weight quantization causes, per quantized operator.

    The correction (W - quantized W)ᵀ times the mean input is added to the output (Nagel et al.
    2019, "Data-Free Quantization Through Weight Equalization and Bias Correction", section 4.2).
    Convolutions stay as they are.
    """
    floats = {node.name: node for node in weighted_nodes(original)}
    for node in list(quantized.graph.node):
        name = floats[node.name].input[0].removesuffix(SMOOTHED) if node.name in floats else ""
        rounded = dequantized_weight(quantized, node) if name else None
        if rounded is None or node.op_type == "Conv":
            continue
        if name not in channels:
            raise TightropeError(f"no means of the channels of {name}: calibrate to correct biases")
        mean = np.array(channels[name]["mean"]) * smoothing_of(original, floats[node.name].input[0])
        lost = rows_of(node, constant_of(original, floats[node.name].input[1]) - rounded)
        add_to_output(quantized, node, mean @ lost)
    drop_unused_initializers(quantized)


def add_to_output(model: onnx.ModelProto, node: onnx.NodeProto, values: np.ndarray) -> None:
    """Add a vector to the output of `node`: to its bias if it has one, else by an Add node."""
    output = node.output[0]
    constants = {tensor.name for tensor in model.graph.initializer}
    consumers = [one for one in model.graph.node if output in one.input]
    added = consumers[0] if [one.op_type for one in consumers] == ["Add"] else node
    for place, name in enumerate(added.input):
        if name in constants and (added is not node or place == BIAS):
            total = constant_of(model, name) + values
            added.input[place] = add_constant(model, f"{output}_correction", total)
            return
    node.output[0] = f"{output}_uncorrected"
    constant = add_constant(model, f"{output}_correction", values)
    correction = helper.make_node(
        "Add", [node.output[0], constant], [output], name=f"{node.name}.correction"
    )
    model.graph.node.insert(place_of(model, node) + 1, correction)


def smoothing_of(model: onnx.ModelProto, name: str) -> Any:
    """Return the factors by which `smoothed` multiplied the channels of tensor `name`, else 1."""
    if not name.endswith(SMOOTHED):
        return 1.0
    producer = next(node for node in model.graph.node if name in node.output)
    return constant_of(model, producer.input[1])
