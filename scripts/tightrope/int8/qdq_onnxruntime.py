"""Q/DQ around convolutions as ONNX Runtime's CPU provider takes it: it multiplies in int8 only
where what comes out is rounded too, and where the bias is in the integers of the sums."""

import numpy as np
import onnx
from onnx import helper, numpy_helper

from tightrope.int8.repairs import constant_of

BIAS = 2


def convolutions(model: onnx.ModelProto, nodes: list[str]) -> list[onnx.NodeProto]:
    """The convolutions among the operators of those names."""
    return [node for node in model.graph.node if node.op_type == "Conv" and node.name in nodes]


def with_integer_biases(model: onnx.ModelProto, nodes: list[str]) -> onnx.ModelProto:
    """`model` whose quantized convolutions `nodes` have biases of int32.

    In steps of the scale of the input times that of each output channel, so that they are added
    to the sums of products as these are (Jacob et al. 2018, "Quantization and Training of Neural
    Networks for Efficient Integer-Arithmetic-Only Inference", equation 11). A bias too large for
    that, beside weights that are nearly zero, stays in float, and its convolution computes so.
    """
    makers = {name: node for node in model.graph.node for name in node.output}
    floats = {tensor.name for tensor in model.graph.initializer}
    for node in convolutions(model, nodes):
        pairs = [makers[name] for name in node.input[:2]]
        if len(node.input) <= BIAS or node.input[BIAS] not in floats:
            continue
        step, steps = (constant_of(model, pair.input[1]) for pair in pairs)
        scale = np.float32(step * steps).reshape(-1)
        with np.errstate(divide="ignore", invalid="ignore"):
            exact = np.rint(constant_of(model, node.input[BIAS]).astype(np.float64) / scale)
        if not (np.abs(exact) <= np.iinfo(np.int32).max).all():
            continue
        bias = exact.astype(np.int32)
        names = [f"{node.name}.bias_{part}" for part in ("integers", "scale")]
        for name, array in zip(names, (bias, scale), strict=True):
            model.graph.initializer.append(numpy_helper.from_array(array, name))
        output = f"{node.name}.bias_DequantizeLinear_Output"
        node.input[BIAS] = output
        model.graph.node.insert(
            0, helper.make_node("DequantizeLinear", names, [output], output, axis=0)
        )
    return model
