"""Schemes of quantization: which types, symmetric or not."""

from typing import NamedTuple

import onnx


class Scheme(NamedTuple):
    """Type of activations in onnxruntime's words; weights are symmetric s8.

    `reduced` keeps weights within 7 bits. A scheme with a `symmetric` type has activations and
    weights in it, all with zero-point 0.
    """

    activations: str = ""
    reduced: bool = False
    symmetric: int | None = None


SCHEMES = {
    # u8 activations are the fast path of CPUs and of ONNX Runtime's CPU provider
    "u8s8": Scheme("QUInt8"),
    # without VNNI, sums of two products of u8 and s8 saturate at 16 bits
    "u8s7": Scheme("QUInt8", reduced=True),
    # TensorRT takes zero-point 0 only, and fuses a residual sum whose skip is rounded too
    "s8s8": Scheme(symmetric=onnx.TensorProto.INT8),
    "e4m3": Scheme(symmetric=onnx.TensorProto.FLOAT8E4M3FN),
}
