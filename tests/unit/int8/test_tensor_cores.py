"""What stays in float for TensorRT, by small graphs."""

import numpy as np
import onnx
from onnx import TensorProto, numpy_helper, parser
from tightrope.int8.schemes import kept_in_float

IMAGES = """<ir_version: 10, opset_import: ["" : 21]>
net (float[batch, 3, 8, 8] pixel_values) => (float[batch, 5] logits)
{
    [stem] a = Conv <pads = [1, 1, 1, 1]> (pixel_values, w_stem)
    [depthwise] b = Conv <group = 32, pads = [1, 1, 1, 1]> (a, w_depthwise)
    [grouped] c = Conv <group = 2, pads = [1, 1, 1, 1]> (b, w_grouped)
    [plain] d = Conv (c, w_plain)
    mean = GlobalAveragePool (d)
    flat = Flatten (mean)
    [head] logits = MatMul (flat, w_head)
}"""
TEXTS = """<ir_version: 10, opset_import: ["" : 21]>
net (int64[batch, sequence] input_ids, int64[batch, sequence] attention_mask)
    => (float[batch, 32] logits)
{
    embedded = Gather (table, input_ids)
    [wide] a = MatMul (embedded, w_wide)
    [narrow] b = MatMul (a, w_narrow)
    [odd] c = MatMul (b, w_odd)
    [back] d = MatMul (c, w_back)
    first = Gather <axis = 1> (d, zero)
    [head] logits = Gemm (first, w_head)
}"""


def model_of(text: str, weights: dict[str, tuple[int, ...]]) -> onnx.ModelProto:
    model = parser.parse_model(text)
    draw = np.random.default_rng(0)
    arrays = {name: draw.standard_normal(size, np.float32) for name, size in weights.items()}
    model.graph.initializer.extend(
        numpy_helper.from_array(array, name) for name, array in arrays.items()
    )
    model.graph.initializer.append(numpy_helper.from_array(np.array(0, np.int64), "zero"))
    return model


def test_the_first_convolution_depthwise_ones_and_the_head_stay_in_float() -> None:
    weights = {
        "w_stem": (32, 3, 3, 3),
        "w_depthwise": (32, 1, 3, 3),
        "w_grouped": (32, 16, 3, 3),
        "w_plain": (64, 32, 1, 1),
        "w_head": (64, 5),
    }
    assert kept_in_float(model_of(IMAGES, weights), TensorProto.INT8) == {
        "stem": "the first convolution",
        "depthwise": "a depthwise convolution",
        "head": "one row per example",
    }


def test_small_products_stay_in_float_and_in_fp8_those_of_other_multiples() -> None:
    weights = {
        "table": (50, 32),
        "w_wide": (32, 64),
        "w_narrow": (64, 8),
        "w_odd": (8, 40),
        "w_back": (40, 32),
        "w_head": (32, 32),
    }
    model, small = model_of(TEXTS, weights), "fewer than 16 channels"
    in_int8 = {"narrow": small, "odd": small, "head": "one row per example"}
    odd = {"back": "channels that are no multiple of 16"}
    assert kept_in_float(model, TensorProto.INT8) == in_int8
    assert kept_in_float(model, TensorProto.FLOAT8E4M3FN) == in_int8 | odd
