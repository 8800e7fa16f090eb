"""Check that TensorRT can run the Q/DQ of an ONNX file that is quantized already, as it is."""

import numpy as np
import onnx
from onnx import NodeProto, TensorProto, helper, numpy_helper

from tightrope.errors import WorkFailed
from tightrope.onnx.edit import attribute, label
from tightrope.onnx.float_model import PAIR, QUANTIZE, all_nodes, constants_of

KINDS = (TensorProto.INT8, TensorProto.FLOAT8E4M3FN)
REMEDY = (
    "quantize symmetrically in int8 or E4M3 (onnxruntime.quantization: activation_type=QInt8, "
    "weight_type=QInt8, extra_options ActivationSymmetric=True, WeightSymmetric=True and "
    "QuantizeBias=False), or give the float file without `quantized`, which this project then "
    "quantizes"
)


def require_supported_qdq(model: onnx.ModelProto) -> None:
    """Raise WorkFailed, naming the node and a remedy, unless TensorRT supports all Q/DQ of `model`.

    It supports int8 and E4M3 with zero-point 0, both constant (onnx-tensorrt,
    QuantDequantLinearHelper). Its parser takes a missing zero-point for int8, where ONNX says
    uint8: such a node is refused too.
    """
    constants = constants_of(model)
    pairs = [node for node in all_nodes(model) if node.op_type in PAIR]
    # of activations first: a bias of int32 follows from them
    for node in sorted(pairs, key=lambda one: one.op_type != QUANTIZE):
        if why := fault(node, constants):
            what = f"{node.op_type} {label(node)}"
            raise WorkFailed(f"TensorRT cannot run {what} with {why}: {REMEDY}", transient=False)


def fault(node: NodeProto, constants: dict[str, TensorProto]) -> str | None:
    """Return what TensorRT does not support in a Q/DQ node, None where it does."""
    zero = node.input[2] if len(node.input) > 2 else ""
    if not zero:
        kind = quantized_type(node, constants)
        return None if kind is None or kind in KINDS else f"the type {type_name(kind)}"
    if zero not in constants:
        return f"a zero-point, {zero}, that is no constant"
    kind = constants[zero].data_type
    values = numpy_helper.to_array(constants[zero]).astype(np.float32).ravel()
    others = values[values != 0]
    if kind in KINDS and not others.size:
        return None
    return f"the zero-point {[*others, 0][0]:g} of type {type_name(kind)}"


def quantized_type(node: NodeProto, constants: dict[str, TensorProto]) -> int | None:
    """Return the quantized type of a node without a zero-point, None where another node sets it."""
    if node.op_type == QUANTIZE:
        return attribute(node, "output_dtype", 0) or TensorProto.UINT8
    return constants[node.input[0]].data_type if node.input[0] in constants else None


def type_name(kind: int) -> str:
    """Return the name of an ONNX type in lower case."""
    return helper.tensor_dtype_to_string(kind).removeprefix("TensorProto.").lower()
