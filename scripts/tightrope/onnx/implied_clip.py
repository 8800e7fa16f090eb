"""Find the Relu or Clip(0, 6) that a quantizer removed because the range of its Q/DQ does the same.

onnxruntime.quantization removes these operators where activations are asymmetric: a range that
starts at 0 takes negative values to 0. Without Q/DQ the operator has to come back.
"""

from collections.abc import Mapping

import numpy as np
from onnx import NodeProto, TensorProto, helper, numpy_helper

from tightrope.onnx.given_qdq import DEQUANTIZE, QUANTIZE, attribute

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
        names = [f"{output}_low", f"{output}_high"]
        bounds = [
            helper.make_tensor(name, kind, [], [bound])
            for name, bound in zip(names, (0.0, SIX), strict=True)
        ]
        return helper.make_node("Clip", [source, *names], [output], output), bounds
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
    if node.op_type == QUANTIZE and starts_at_zero(node, constants):
        return True
    if node.op_type in NEVER_NEGATIVE:
        return True
    if node.op_type in (*OF_FIRST_INPUT, QUANTIZE, DEQUANTIZE):
        return is_never_negative(node.input[0], constants, producers)
    return node.op_type in OF_ALL_INPUTS and all(
        is_never_negative(one, constants, producers) for one in node.input
    )
