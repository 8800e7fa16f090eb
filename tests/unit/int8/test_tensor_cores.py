"""What stays in float for TensorRT, by small graphs."""

from onnx import TensorProto
from onnx_text import drawn, onnx_model
from tightrope.int8.schemes import kept_in_float

IMAGES = """net (float[batch, 3, 8, 8] pixel_values) => (float[batch, 5] logits)
{
    [stem] a = Conv <pads = [1, 1, 1, 1]> (pixel_values, w_stem)
    [depthwise] b = Conv <group = 32, pads = [1, 1, 1, 1]> (a, w_depthwise)
    [grouped] c = Conv <group = 2, pads = [1, 1, 1, 1]> (b, w_grouped)
    [plain] d = Conv (c, w_plain)
    mean = GlobalAveragePool (d)
    flat = Flatten (mean)
    [head] logits = MatMul (flat, w_head)
}"""
TEXTS = """net (int64[batch, sequence] input_ids, int64[batch, sequence] attention_mask)
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


def test_the_first_convolution_depthwise_ones_and_the_head_stay_in_float() -> None:
    sizes = {"stem": (32, 3, 3, 3), "depthwise": (32, 1, 3, 3), "grouped": (32, 16, 3, 3)}
    sizes |= {"plain": (64, 32, 1, 1), "head": (64, 5)}
    model = onnx_model(IMAGES, **{f"w_{name}": drawn(*size) for name, size in sizes.items()})
    assert kept_in_float(model, TensorProto.INT8) == {
        "stem": "the first convolution",
        "depthwise": "a depthwise convolution",
        "head": "one row per example",
    }


def test_small_products_stay_in_float_and_in_fp8_those_of_other_multiples() -> None:
    sizes = {"wide": (32, 64), "narrow": (64, 8), "odd": (8, 40), "back": (40, 32)}
    sizes |= {"head": (32, 32)}
    weights = {f"w_{name}": drawn(*size) for name, size in sizes.items()}
    model = onnx_model(TEXTS, table=drawn(50, 32), zero=0, **weights)
    small = "fewer than 16 channels"
    in_int8 = {"narrow": small, "odd": small, "head": "one row per example"}
    odd = {"back": "channels that are no multiple of 16"}
    assert kept_in_float(model, TensorProto.INT8) == in_int8
    assert kept_in_float(model, TensorProto.FLOAT8E4M3FN) == in_int8 | odd
