"""The float model in a file that is quantized already is the one that was quantized."""

import numpy as np
import onnx
import pytest
from given_files import KINDS, WAYS, given_model, in_float16, quantized_by_onnxruntime
from onnx import TensorProto, numpy_helper
from onnx_text import HEAD, kinds, onnx_model
from onnxruntime.quantization import QuantFormat
from tightrope.errors import ArtifactError, TightropeError
from tightrope.onnx.edit import constant_of, weighted_nodes
from tightrope.onnx.float_model import (
    has_halves,
    in_float,
    in_float32,
    is_quantized,
    require_as_said,
    with_activations_in_float,
)
from tightrope.onnx.session import run_onnx
from tiny_convolutions import make_convolutions, pictures
from tiny_model import difference

BATCH = {"pixel_values": pictures(4, seed=9)}
# the relative error of rounding weights to int8, and to the three bits of E4M3
ERRORS = {"u8s8": 0.02, "s8s8": 0.02, "pairs": 1e-6, "tensorrt": 0.02, "e4m3": 0.08}


def logits(model: onnx.ModelProto) -> np.ndarray:
    return run_onnx(model, [BATCH], threads=1)[0]


@pytest.mark.parametrize("way", [*WAYS, *KINDS])
def test_it_answers_as_the_original_but_for_the_rounding_of_the_weights(way: str) -> None:
    """Weights are dequantized as ONNX Runtime does it, to float32 constants of their operators."""
    given, original = given_model(way), make_convolutions()
    before = given.SerializeToString(deterministic=True)
    found = in_float(given)
    onnx.checker.check_model(found, full_check=True)
    assert is_quantized(given)
    assert not is_quantized(found)
    assert given.SerializeToString(deterministic=True) == before
    assert difference(logits(found), logits(original)) < ERRORS[way]
    assert difference(logits(found), logits(with_activations_in_float(given))) < 1e-6
    assert len(weighted_nodes(found)) == len(weighted_nodes(original))
    types = {tensor.data_type for tensor in found.graph.initializer}
    assert types <= {TensorProto.FLOAT, TensorProto.INT64}
    assert numbers(found) == numbers(original)
    # a Relu that the quantizer left to the range of its output comes back
    assert kinds(found).count("Relu") == 1


def numbers(model: onnx.ModelProto) -> int:
    return sum(int(np.prod(one.dims)) for one in model.graph.initializer)


CLIPPED = """net (float[n, 4] x) => (float[n, 4] y)
<float scale = {SCALE}, uint8 zero = {0}, float eighth = {0.125}, float none = {0}>
{
    a = Relu (x)
    s = Add (x, none)
    b = QuantizeLinear (s, scale, zero)
    c = DequantizeLinear (b, scale, zero)
    d = Identity (c)
    e = QuantizeLinear (d, eighth)
    f = DequantizeLinear (e, eighth)
    y = Add (f, a)
}
"""


@pytest.mark.parametrize(("scale", "operator", "top"), [(6 / 255, "Clip", 6), (0.1, "Relu", 9)])
def test_a_range_from_0_is_a_relu_and_to_6_a_clip(scale: float, operator: str, top: float) -> None:
    model = onnx_model(CLIPPED.replace("SCALE", str(scale)))
    found = in_float(model)
    added = [kind for kind in kinds(found) if kind in ("Relu", "Clip")]
    assert sorted(added) == sorted(["Relu", operator])
    values = np.array([[-3, 2, 5, 9]], np.float32)
    expected = np.clip(values, 0, top) + np.maximum(values, 0)
    np.testing.assert_array_equal(run_onnx(found, [{"x": values}], threads=1)[0], expected)


@pytest.mark.parametrize(("operator", "added"), [("Mul", 0), ("Sub", 1)])
def test_a_sum_that_may_be_negative_alone_gets_a_relu(operator: str, added: int) -> None:
    text = CLIPPED.replace("SCALE", "0.1")
    text = text.replace("s = Add (x, none)", f"t = {operator} (a, a)\n    s = Add (t, a)")
    assert kinds(in_float(onnx_model(text))).count("Relu") == 1 + added


def test_a_file_in_float16_becomes_float32() -> None:
    half = in_float16(given_model("pairs"))
    assert has_halves(half)
    found = in_float(half)
    assert not has_halves(found)
    assert difference(logits(found), logits(in_float(given_model("pairs")))) < 2e-3
    for tensor in half.graph.initializer:  # float32 has every number of float16
        values = numpy_helper.to_array(tensor).astype(np.float32)
        np.testing.assert_array_equal(constant_of(in_float32(half), tensor.name), values)


BLOCKS = """net (float[n, 5] x) => (float[n, 2] y) {
    w = DequantizeLinear <axis = 0, block_size = 2> (q, s)
    y = MatMul (x, w)
}"""


def test_scales_in_blocks_are_spread_over_the_axis() -> None:
    values = np.arange(10, dtype=np.int8).reshape(5, 2)
    scale = np.array([[1, 2], [3, 4], [5, 6]], np.float32)
    model = onnx_model(BLOCKS, s=scale)
    model.graph.initializer.append(numpy_helper.from_array(values, "q"))
    found = constant_of(in_float(model), "w")
    np.testing.assert_array_equal(found, values * np.repeat(scale, 2, 0)[:5])
    batch = {"x": np.eye(5, dtype=np.float32)}
    np.testing.assert_array_equal(run_onnx(model, [batch], threads=1)[0], found)


UNPAIRED = """net (float[n, 4] x) => (float[n, 2, 2] y)
<float scale = {0.5}, int8 zero = {0}, int64[3] shape = {-1, 2, 2}>
{
    q = QuantizeLinear (x, scale, zero)
    r = Reshape (q, shape)
    y = DequantizeLinear (r, scale, zero)
}
"""


def test_qdq_around_another_operator_is_refused_with_its_name() -> None:
    with pytest.raises(ArtifactError, match="DequantizeLinear y reads Reshape: only constants"):
        in_float(onnx_model(UNPAIRED))
    alone = UNPAIRED.replace("DequantizeLinear (r, scale, zero)", "Cast <to = 1> (r)")
    with pytest.raises(ArtifactError, match="QuantizeLinear q is read by Reshape r: only Deq"):
        in_float(onnx_model(alone))


def test_a_mask_that_was_0_when_the_ranges_were_found_gets_no_relu() -> None:
    mask = CLIPPED.replace("Add (x, none)", "Mul (x, eighth)").replace("SCALE", "1.0")
    assert kinds(in_float(onnx_model(mask))).count("Relu") == 1


def test_a_file_with_qdq_needs_the_key_and_one_without_takes_none() -> None:
    require_as_said(given_model("u8s8"), "onnx:m", quantized=True)
    require_as_said(make_convolutions(), "onnx:m", quantized=False)
    with pytest.raises(TightropeError, match=r"^onnx:m: is quantized already .*quantized: true"):
        require_as_said(given_model("u8s8"), "onnx:m", quantized=False)
    with pytest.raises(TightropeError, match=r"^onnx:m: has no QuantizeLinear.*remove `quantized`"):
        require_as_said(make_convolutions(), "onnx:m", quantized=True)
    # operators in integers, whatever is said
    model = quantized_by_onnxruntime(make_convolutions(), quant_format=QuantFormat.QOperator)
    for said in (True, False):
        with pytest.raises(TightropeError, match=r"QLinear.* integers itself; .*QuantFormat.QDQ"):
            require_as_said(model, "onnx:m", quantized=said)


IN_A_BRANCH = """net (bool flag, float[n] x) => (float[n] y) <float scale = {1}, int8 zero = {0}> {
    y = If (flag) <
        then_branch = one () => (float[n] d) {
            q = QuantizeLinear (x, scale, zero)
            d = DequantizeLinear (q, scale, zero)
        },
        else_branch = two () => (float[n] e) { e = Identity (x) }
    >
}"""
OF_TENSORRT = "net (float[n] x) => (float[n] q) { q = trt.TRT_FP8QuantizeLinear (x) }"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (IN_A_BRANCH, r"Q/DQ inside a branch or loop"),
        (OF_TENSORRT, r"TRT_FP8QuantizeLinear is an operator of TensorRT"),
    ],
)
def test_qdq_in_a_branch_alone_and_that_of_tensorrt_alone_are_refused(text: str, said: str) -> None:
    model = onnx_model(text, HEAD.replace("]>", ', "trt" : 1]>'))
    with pytest.raises(TightropeError, match=said):
        require_as_said(model, "onnx:m", quantized=True)
