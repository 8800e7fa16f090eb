"""Insert Q/DQ in the form that ONNX Runtime's CPU provider fuses.

The provider runs a convolution in int8 only where its output is quantized too and its bias is int32
in the scale of the accumulator.
"""

from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper

from tightrope.int8.repairs import Ranges
from tightrope.int8.schemes import Scheme
from tightrope.onnx.edit import WEIGHTED, before_qdq, constant_of, drop_unused_initializers

Repair = dict[str, Any]

BIAS = 2


def convolutions(model: onnx.ModelProto, nodes: list[str]) -> list[onnx.NodeProto]:
    """Return the convolutions among the operators named in `nodes`."""
    return [node for node in model.graph.node if node.op_type == "Conv" and node.name in nodes]


def with_integer_biases(model: onnx.ModelProto, nodes: list[str]) -> onnx.ModelProto:
    """Convert the biases of the quantized convolutions `nodes` of `model` to int32.

    The scale of a bias is the input scale times the weight scale of each output channel, so the
    bias is added directly to the int32 accumulator (Jacob et al. 2018, "Quantization and Training
    of Neural Networks for Efficient Integer-Arithmetic-Only Inference", equation 11). A bias that
    overflows int32, because its weights are nearly zero, stays in float, and its convolution runs
    in float.
    """
    producers = {name: node for node in model.graph.node for name in node.output}
    floats = {tensor.name for tensor in model.graph.initializer}
    for node in convolutions(model, nodes):
        pairs = [producers[name] for name in node.input[:2]]
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


def quantized_only_for(model: onnx.ModelProto, nodes: list[str]) -> onnx.ModelProto:
    """Let only the operators `nodes` of `model` read quantized activations.

    ONNX Runtime's quantizer connects every consumer to the quantized tensor, which would quantize
    skip connections in each layer for no gain. Outputs of convolutions stay quantized for all
    consumers.
    """
    producers = {name: node for node in model.graph.node for name in node.output}
    rounded = {node.output[0] for node in convolutions(model, nodes)}
    for node in model.graph.node:
        if node.name not in nodes and node.op_type not in ("QuantizeLinear", "DequantizeLinear"):
            plain = [(name, before_qdq(name, producers)) for name in node.input]
            node.input[:] = [name if source in rounded else source for name, source in plain]
    return model


def onnxruntime_qdq(
    model: onnx.ModelProto, ranges: Ranges, nodes: list[str], scheme: Scheme, repair: Repair
) -> onnx.ModelProto:
    """Return `model` with Q/DQ around the operators `nodes`, by ONNX Runtime's quantizer."""
    from onnxruntime.quantization import CalibrationMethod, QuantType
    from onnxruntime.quantization.calibrate import TensorData, TensorsData
    from onnxruntime.quantization.qdq_quantizer import QDQQuantizer

    bounds = {
        name: TensorData(lowest=np.float32(low), highest=np.float32(high))
        for name, (low, high) in ranges.items()
    }
    options = {
        "ActivationSymmetric": repair.get("activations") == "symmetric",
        "WeightSymmetric": True,
        "QuantizeBias": False,
        "QDQDisableWeightAdjustForInt32Bias": True,
        # keep the 32-bit accumulator: the bias is added to it, not to a quantized output
        "OpTypesToExcludeOutputQuantization": [] if repair.get("outputs") else ["Gemm", "MatMul"],
    }
    quantizer = QDQQuantizer(
        model,
        True,  # per-channel weights
        scheme.reduced,
        QuantType.QInt8,
        QuantType[scheme.activations],
        TensorsData(CalibrationMethod.MinMax, bounds),
        nodes,
        [],
        list(WEIGHTED),
        options,
    )
    quantizer.quantize_model()
    quantizer.model.topological_sort()
    quantized = quantizer.model.model
    del quantized.graph.value_info[:]
    if not repair.get("outputs"):
        quantized = quantized_only_for(quantized, nodes)
    quantized = with_integer_biases(quantized, nodes)
    drop_unused_initializers(quantized)
    return quantized
