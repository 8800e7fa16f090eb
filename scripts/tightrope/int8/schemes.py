"""Quantization schemes, and what those of TensorRT leave in float or quantize besides."""

import math
from typing import NamedTuple

import onnx
from onnx import TensorProto

from tightrope.onnx.attention import Attention, attention_in
from tightrope.onnx.edit import attribute, constant_of, rows_of, weighted_nodes
from tightrope.onnx.session import TRIALS, Shapes, shapes_seen

# NVIDIA's Model Optimizer leaves products with fewer rows or columns of weights in float too
# (modelopt/onnx/quantization/graph_utils.py)
LEAST = 16
# a Softmax returns 0 to 1 for any input, so the scale needs no data
PROBABILITIES = [0.0, 1.0]
# widths of a head for which TensorRT has fused attention in int8, by the documentation of 10
WIDTHS = (16, 32, 64)
LONGEST_IN_INT8 = 512
# fp8 has more: multiples, up to the largest for which Model Optimizer quantizes
MULTIPLE, LARGEST = 16, 256


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


def kept_in_float(model: onnx.ModelProto, kind: int) -> dict[str, str]:
    """Return operators with weights that stay in float in a file for TensorRT, with the reason.

    `kind` is the type of the quantized operators, INT8 or FLOAT8E4M3FN. A network is strongly
    typed, so that the build fails where TensorRT has no kernel of that type. Raises ArtifactError
    where the model does not run.
    """
    inputs = {one.name for one in model.graph.input}
    shapes = shapes_seen(model)
    found: dict[str, str] = {}
    for node in weighted_nodes(model):
        weight = constant_of(model, node.input[1])
        if node.op_type == "Conv":
            groups = attribute(node, "group", 1)
            if node.input[0] in inputs:
                found[node.name] = "the first convolution"
            elif groups > 1 and weight.shape[1] == 1:
                found[node.name] = "a depthwise convolution"
            continue
        rows = [math.prod(shape[:-1]) for shape in shapes[node.input[0]]]
        sizes = rows_of(node, weight).shape
        if rows == [batch for batch, _ in TRIALS]:
            found[node.name] = "one row per example"
        elif min(sizes) < LEAST:
            found[node.name] = f"fewer than {LEAST} channels"
        elif kind == TensorProto.FLOAT8E4M3FN and any(size % LEAST for size in sizes):
            found[node.name] = f"channels that are no multiple of {LEAST}"
    return found


def attention_to_quantize(
    model: onnx.ModelProto, kind: int
) -> tuple[list[Attention], dict[str, str]]:
    """Return the attention that is quantized, and the reason for each Softmax of the others.

    `kind` is the type of the quantized operands, INT8 or FLOAT8E4M3FN. Raises ArtifactError where
    the model does not run.
    """
    found, others = attention_in(model)
    shapes = shapes_seen(model) if found else {}
    reasons = {one.softmax: unfit(one, shapes, kind) for one in found}
    others |= {name: reason for name, reason in reasons.items() if reason}
    return [one for one in found if one.softmax not in others], others


def unfit(attention: Attention, shapes: Shapes, kind: int) -> str | None:
    """Return why tensor cores run an attention no faster in 8 bits, None where they may."""
    if all(shape[-2] == 1 for shape in shapes[attention.query]):
        return "one query per example"
    widths = sorted({shapes[name][0][-1] for name in (attention.query, attention.value)})
    if kind == TensorProto.INT8:
        fit = all(width in WIDTHS for width in widths)
        sizes = ", ".join(map(str, WIDTHS))
    else:
        fit = all(width % MULTIPLE == 0 and width <= LARGEST for width in widths)
        sizes = f"multiples of {MULTIPLE} up to {LARGEST}"
    return None if fit else f"heads of {' and '.join(map(str, widths))} channels, not {sizes}"
