"""A tiny image classifier as an ONNX file: a block of ConvNeXt, then one of ResNet that halves."""

import numpy as np
import onnx
from onnx import numpy_helper, parser
from tightrope.onnx.edit import weighted_nodes, with_outputs
from tightrope.onnx.session import open_model

TEXT = """
<ir_version: 10, opset_import: ["" : 21]>
net (float[batch, 3, 16, 16] pixel_values) => (float[batch, 4] logits)
{
    stem = Conv <strides = [2, 2]> (pixel_values, stem_weight, stem_bias)
    depthwise = Conv <group = 8, pads = [1, 1, 1, 1]> (stem, depthwise_weight, depthwise_bias)
    last = Transpose <perm = [0, 2, 3, 1]> (depthwise)
    norm = LayerNormalization (last, norm_weight, norm_bias)
    wide = MatMul (norm, wide_weight)
    biased = Add (wide, wide_bias)
    bent = Gelu (biased)
    narrow = MatMul (bent, narrow_weight)
    layer_scaled = Mul (narrow, layer_scale)
    first = Transpose <perm = [0, 3, 1, 2]> (layer_scaled)
    block = Add (first, stem)
    half = Conv <strides = [2, 2], pads = [1, 1, 1, 1]> (block, half_weight, half_bias)
    bent_half = Relu (half)
    deep = Conv <pads = [1, 1, 1, 1]> (bent_half, deep_weight, deep_bias)
    shortcut = Conv <strides = [2, 2]> (block, shortcut_weight)
    halved = Add (deep, shortcut)
    pooled = GlobalAveragePool (halved)
    flat = Flatten (pooled)
    logits = Gemm <transB = 1> (flat, head_weight, head_bias)
}
"""
SHAPES = {
    **{"stem_weight": (8, 3, 2, 2), "stem_bias": (8,), "depthwise_weight": (8, 1, 3, 3)},
    **{"depthwise_bias": (8,), "norm_weight": (8,), "norm_bias": (8,), "wide_weight": (8, 16)},
    **{"wide_bias": (16,), "narrow_weight": (16, 8), "layer_scale": (8,)},
    **{"half_weight": (12, 8, 3, 3), "half_bias": (12,), "deep_weight": (12, 12, 3, 3)},
    **{"deep_bias": (12,), "shortcut_weight": (12, 8, 1, 1)},
    **{"head_weight": (4, 12), "head_bias": (4,)},
}


def make_convolutions() -> onnx.ModelProto:
    """The model with random weights."""
    draw = np.random.default_rng(0)
    model = parser.parse_model(TEXT)
    model.graph.initializer.extend(
        numpy_helper.from_array(
            (draw.standard_normal(shape) / np.sqrt(np.prod(shape[1:]) or 1)).astype(np.float32),
            name,
        )
        for name, shape in SHAPES.items()
    )
    for node in model.graph.node:
        node.name = node.output[0]
    return model


def pictures(count: int, seed: int) -> np.ndarray:
    """Random pixels float32 [count, 3, 16, 16]."""
    draw = np.random.default_rng(seed)
    return draw.standard_normal((count, 3, 16, 16)).astype(np.float32)


def ranges_of(model: onnx.ModelProto, pixels: np.ndarray) -> dict[str, list[float]]:
    """From the lowest to the highest value of what operators with weights read and give."""
    names = [name for node in weighted_nodes(model) for name in (node.input[0], node.output[0])]
    names = [name for name in dict.fromkeys(names) if name != "pixel_values"]
    session = open_model(with_outputs(model, names), threads=1)
    found = dict(zip(names, session.run(names, {"pixel_values": pixels}), strict=True))
    found["pixel_values"] = pixels
    return {name: [float(array.min()), float(array.max())] for name, array in found.items()}
