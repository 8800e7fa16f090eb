"""Quantization schemes: types of activations and weights, symmetric or not."""

from typing import NamedTuple

import onnx


class Scheme(NamedTuple):
    """Type of activations, as onnxruntime names it; weights are symmetric s8.

    `reduced` limits weights to 7 bits. With a `symmetric` type, activations and weights have that
    type and zero-point 0.
    """

    activations: str = ""
    reduced: bool = False
    symmetric: int | None = None


SCHEMES = {
    # u8 activations are the fast path of CPUs and of ONNX Runtime's CPU provider
    "u8s8": Scheme("QUInt8"),
    # without VNNI, sums of two products of u8 and s8 saturate at 16 bits
    "u8s7": Scheme("QUInt8", reduced=True),
    # TensorRT supports zero-point 0 only, and fuses a residual sum whose skip is quantized too
    "s8s8": Scheme(symmetric=onnx.TensorProto.INT8),
    "e4m3": Scheme(symmetric=onnx.TensorProto.FLOAT8E4M3FN),
}
