"""Quantization schemes; of TensorRT what they leave in float, and Q/DQ in the form that it fuses.

That form has zero-points 0, float16 scales and quantized skip connections.
"""

import math
from collections.abc import Collection
from typing import Any, NamedTuple

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from tightrope.errors import TightropeError
from tightrope.int8.ranges import Ranges
from tightrope.onnx.attention import Attention, attention_in
from tightrope.onnx.edit import (
    SMALLEST_SCALE,
    at_opset,
    attribute,
    constant_of,
    rows_of,
    set_operators,
    weighted_nodes,
)
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
MULTIPLE, WIDEST = 16, 256
# ends the name of an activation that SmoothQuant has scaled
SMOOTHED = "_smoothed"
# first opset in which Q/DQ supports the type
OPSETS: dict[int, int] = {TensorProto.INT8: 13, TensorProto.FLOAT8E4M3FN: 19}
# largest absolute value of each type, symmetric around zero
LARGEST: dict[int, int] = {TensorProto.INT8: 127, TensorProto.FLOAT8E4M3FN: 448}


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
    "s8s8": Scheme(symmetric=TensorProto.INT8),
    "e4m3": Scheme(symmetric=TensorProto.FLOAT8E4M3FN),
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
        fit = all(width % MULTIPLE == 0 and width <= WIDEST for width in widths)
        sizes = f"multiples of {MULTIPLE} up to {WIDEST}"
    return None if fit else f"heads of {' and '.join(map(str, widths))} channels, not {sizes}"


def tensorrt_qdq(
    model: onnx.ModelProto,
    ranges: Ranges,
    nodes: list[str],
    *,
    kind: int,
    outputs: bool,
    products: Collection[str] = (),
) -> onnx.ModelProto:
    """Return a copy of `model` with Q/DQ of type `kind` on both inputs of the operators `nodes`.

    So are those of `products`, which have no weights. Each activation has one Q/DQ pair. Its output
    feeds those operators and the skip inputs of residual sums; other consumers read the original
    tensor. With `outputs`, the outputs of `nodes` are quantized too, and every consumer reads the
    quantized tensor. Biases stay as they are. Raises TightropeError where a range needs a scale
    beyond float16, or where the opset lacks the type and cannot be raised.
    """
    made = at_opset(model, OPSETS[kind])
    chosen = {node.name: node for node in weighted_nodes(made) if node.name in nodes}
    constants = {tensor.name for tensor in made.graph.initializer}
    # of operators with weights the first input, of products both
    inputs = [
        name
        for node in made.graph.node
        if node.name in chosen or node.name in products
        for name in (node.input if node.name in products else node.input[:1])
    ]
    given = {one.name for one in made.graph.output}
    results = [node.output[0] for node in chosen.values() if node.output[0] not in given]
    for_all = [*inputs, *results] if outputs else []
    names = dict.fromkeys([*inputs, *for_all, *other_skips(made, chosen, ranges)])
    pairs = {name: quantized_activation(made, name, ranges[name], kind) for name in names}
    rounded = {name: pair[-1].output[0] for name, pair in pairs.items()}
    weights: dict[tuple[str, int | None], str] = {}
    written: list[onnx.NodeProto] = []
    for node in made.graph.node:
        # products read both inputs quantized, and so do sums of two computed tensors
        both = node.name in products
        both = both or (node.op_type == "Add" and not constants & set(node.input))
        for place, name in enumerate(node.input):
            reads = both or (node.name in chosen and place == 0)
            if name in for_all or (name in rounded and reads):
                written += pairs.pop(name, [])
                node.input[place] = rounded[name]
        if node.name in chosen:
            # of output channels
            axis = 0 if node.op_type == "Conv" or attribute(node, "transB", 0) else 1
            weight = node.input[1], axis if kind == TensorProto.INT8 else None
            if weight not in weights:
                written.append(quantized_weight(made, *weight, kind))
                weights[weight] = written[-1].output[0]
            node.input[1] = weights[weight]
        written.append(node)
    set_operators(made, written)
    return made


def other_skips(
    model: onnx.ModelProto, chosen: dict[str, onnx.NodeProto], ranges: Ranges
) -> list[str]:
    """Return further tensors that sums may read quantized, if their range is known.

    These are the tensor before an input that SmoothQuant has scaled, and the second input of a sum
    of two convolutions, as in a block that halves the resolution. TensorRT fuses a convolution with
    the sum after it where the other input of the sum is quantized.
    """
    inputs = (node.input[0] for node in chosen.values())
    found = [name.removesuffix(SMOOTHED) for name in inputs if name.endswith(SMOOTHED)]
    made = {node.output[0] for node in chosen.values() if node.op_type == "Conv"}
    sums = (node for node in model.graph.node if node.op_type == "Add")
    found += [node.input[1] for node in sums if set(node.input) <= made]
    return [name for name in found if name in ranges]


def quantized_activation(
    model: onnx.ModelProto, name: str, bounds: list[float], kind: int
) -> list[onnx.NodeProto]:
    """Return the Q/DQ pair of tensor `name`, scaled by its largest absolute value."""
    inputs = parameters(model, name, scales(np.max(np.abs(bounds)), kind, name), kind)
    middle, output = f"{name}_QuantizeLinear_Output", f"{name}_DequantizeLinear_Output"
    return [
        helper.make_node("QuantizeLinear", [name, *inputs], [middle], f"{name}_QuantizeLinear"),
        helper.make_node(
            "DequantizeLinear", [middle, *inputs], [output], f"{name}_DequantizeLinear"
        ),
    ]


def quantized_weight(
    model: onnx.ModelProto, name: str, axis: int | None, kind: int
) -> onnx.NodeProto:
    """Quantize the constant `name`; return its DequantizeLinear node.

    int8 has a scale per index of `axis`. E4M3 has one for the whole tensor, axis None: TensorRT's
    fused FP8 product knows no other, and dequantizes to float16 before a float16 product instead
    (NVIDIA TensorRT-Model-Connect, pull request 1386).
    """
    values = constant_of(model, name)
    others = tuple(index for index in range(values.ndim) if index != axis)
    step = scales(np.abs(values).max(axis=others), kind, name)
    quotient = values / np.expand_dims(step, others)
    if kind == TensorProto.INT8:
        quotient = np.rint(quotient)
    held = np.clip(quotient, -LARGEST[kind], LARGEST[kind])
    # another operator may read the same matrix transposed
    known = {tensor.name for tensor in model.graph.initializer}
    stem = name if f"{name}_quantized" not in known else f"{name}_by_{axis}"
    inputs = [f"{stem}_quantized", *parameters(model, stem, step, kind)]
    model.graph.initializer.append(
        numpy_helper.from_array(held.astype(numpy_type(kind)), inputs[0])
    )
    output = f"{stem}_DequantizeLinear_Output"
    # no attribute is made of an axis that is None
    return helper.make_node(
        "DequantizeLinear", inputs, [output], f"{stem}_DequantizeLinear", axis=axis
    )


def scales(bounds: np.ndarray, kind: int, name: str) -> np.ndarray:
    """Return `bounds` over the largest value of the type, as float32 that is exact in float16.

    Scales are rounded to float16 here, so that weights are quantized and dequantized with the same
    scales.
    """
    wanted = np.maximum(bounds / LARGEST[kind], SMALLEST_SCALE)
    if not (wanted <= np.finfo(np.float16).max).all():
        raise TightropeError(
            f"{name}: values up to {bounds.max():.3g} are beyond float16; leave its operators in "
            "float by `float` of a repair"
        )
    return wanted.astype(np.float16).astype(np.float32)


def parameters(model: onnx.ModelProto, stem: str, step: np.ndarray, kind: int) -> list[str]:
    """Add scales and zero-points of the same shape to the graph; return their names."""
    zero = np.zeros(step.shape, numpy_type(kind))
    found = {f"{stem}_scale": step, f"{stem}_zero_point": zero}
    model.graph.initializer.extend(
        numpy_helper.from_array(array, name) for name, array in found.items()
    )
    return list(found)


def numpy_type(kind: int) -> Any:
    """Return the NumPy dtype of an ONNX type; for float8, that of ml_dtypes."""
    return helper.tensor_dtype_to_np_dtype(kind)
