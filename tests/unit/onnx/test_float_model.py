"""The float model in a file that is quantized already is the one that was quantized."""

import numpy as np
import onnx
import pytest
from given_files import KINDS, WAYS, given_model, in_float16
from onnx import TensorProto, helper, numpy_helper, parser
from tightrope.errors import ArtifactError
from tightrope.onnx.edit import constant_of
from tightrope.onnx.float_model import has_halves, in_float, in_float32, with_activations_in_float
from tightrope.onnx.given_qdq import is_quantized
from tightrope.onnx.session import run_onnx
from tightrope.onnx.weights import weighted_nodes
from tiny_convolutions import make_convolutions, pictures

BATCH = {"pixel_values": pictures(4, seed=9)}
# the relative error of rounding weights to int8, and to the three bits of E4M3
ERRORS = {"u8s8": 0.02, "s8s8": 0.02, "pairs": 1e-6, "tensorrt": 0.02, "e4m3": 0.08}


def logits(model: onnx.ModelProto) -> np.ndarray:
    return run_onnx(model, [BATCH], threads=1)[0]


def error(found: np.ndarray, expected: np.ndarray) -> float:
    return float(np.linalg.norm(found - expected) / np.linalg.norm(expected))


@pytest.mark.parametrize("way", [*WAYS, *KINDS])
def test_it_answers_as_the_original_but_for_the_rounding_of_the_weights(way: str) -> None:
    given = given_model(way)
    found = in_float(given)
    onnx.checker.check_model(found, full_check=True)
    assert is_quantized(given)
    assert not is_quantized(found)
    assert error(logits(found), logits(make_convolutions())) < ERRORS[way]


@pytest.mark.parametrize("way", [*WAYS, *KINDS])
def test_weights_are_dequantized_as_onnx_runtime_dequantizes_them(way: str) -> None:
    given = given_model(way)
    expected = logits(with_activations_in_float(given))
    assert error(logits(in_float(given)), expected) < 1e-6


@pytest.mark.parametrize("way", [*WAYS, *KINDS])
def test_weights_are_float32_constants_of_their_operators(way: str) -> None:
    found = in_float(given_model(way))
    assert len(weighted_nodes(found)) == len(weighted_nodes(make_convolutions()))
    kinds = {tensor.data_type for tensor in found.graph.initializer}
    assert kinds <= {TensorProto.FLOAT, TensorProto.INT64}
    sizes = [
        sum(np.prod(one.dims) for one in m.graph.initializer) for m in (found, make_convolutions())
    ]
    assert sizes[0] == sizes[1]


def test_the_given_model_is_left_as_it_is() -> None:
    given = given_model("u8s8")
    before = given.SerializeToString(deterministic=True)
    in_float(given)
    assert given.SerializeToString(deterministic=True) == before


def test_a_relu_that_the_quantizer_left_to_the_range_comes_back() -> None:
    given = given_model("u8s8")
    assert "Relu" not in {node.op_type for node in given.graph.node}
    found = [node.op_type for node in in_float(given).graph.node]
    assert found.count("Relu") == 1


CLIPPED = """
<ir_version: 10, opset_import: ["" : 21]>
net (float[n, 4] x) => (float[n, 4] y)
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
def test_a_range_from_0_to_6_is_a_clip_and_one_from_0_a_relu_where_values_may_be_negative(
    scale: float, operator: str, top: float
) -> None:
    model = parser.parse_model(CLIPPED.replace("SCALE", str(scale)))
    found = in_float(model)
    added = [node.op_type for node in found.graph.node if node.op_type in ("Relu", "Clip")]
    assert sorted(added) == sorted(["Relu", operator])
    values = np.array([[-3, 2, 5, 9]], np.float32)
    expected = np.clip(values, 0, top) + np.maximum(values, 0)
    np.testing.assert_array_equal(run_onnx(found, [{"x": values}], threads=1)[0], expected)


@pytest.mark.parametrize("way", ["s8s8", "pairs"])
def test_a_file_in_float16_becomes_float32(way: str) -> None:
    half = in_float16(given_model(way))
    assert has_halves(half)
    found = in_float(half)
    assert not has_halves(found)
    assert error(logits(found), logits(in_float(given_model(way)))) < 2e-3
    assert error(logits(found), logits(with_activations_in_float(half))) < 5e-3


def test_float32_has_every_number_of_float16_and_bfloat16() -> None:
    model = in_float16(given_model("s8s8"))
    found = in_float32(model)
    for tensor in model.graph.initializer:
        values = numpy_helper.to_array(tensor)
        np.testing.assert_array_equal(constant_of(found, tensor.name), values.astype(np.float32))


def test_scales_in_blocks_are_spread_over_the_axis() -> None:
    values = np.arange(10, dtype=np.int8).reshape(5, 2)
    scale = np.array([[1, 2], [3, 4], [5, 6]], np.float32)
    node = helper.make_node("DequantizeLinear", ["q", "s"], ["w"], axis=0, block_size=2)
    graph = helper.make_graph(
        [node, helper.make_node("MatMul", ["x", "w"], ["y"])],
        "blocks",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 5])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n", 2])],
        [numpy_helper.from_array(values, "q"), numpy_helper.from_array(scale, "s")],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    found = constant_of(in_float(model), "w")
    np.testing.assert_array_equal(found, values * np.repeat(scale, 2, 0)[:5])
    batch = {"x": np.eye(5, dtype=np.float32)}
    np.testing.assert_array_equal(run_onnx(model, [batch], threads=1)[0], found)


UNPAIRED = """
<ir_version: 10, opset_import: ["" : 21]>
net (float[n, 4] x) => (float[n, 2, 2] y)
<float scale = {0.5}, int8 zero = {0}, int64[3] shape = {-1, 2, 2}>
{
    q = QuantizeLinear (x, scale, zero)
    r = Reshape (q, shape)
    y = DequantizeLinear (r, scale, zero)
}
"""


def test_qdq_around_another_operator_is_refused_with_its_name() -> None:
    with pytest.raises(ArtifactError, match="DequantizeLinear y reads Reshape: only constants"):
        in_float(parser.parse_model(UNPAIRED))
    alone = UNPAIRED.replace("DequantizeLinear (r, scale, zero)", "Cast <to = 1> (r)")
    with pytest.raises(ArtifactError, match="QuantizeLinear q is read by Reshape r: only Deq"):
        in_float(parser.parse_model(alone))


def test_a_mask_that_was_0_when_the_ranges_were_found_gets_no_relu() -> None:
    mask = CLIPPED.replace("Add (x, none)", "Mul (x, eighth)").replace("SCALE", "1.0")
    assert [node.op_type for node in in_float(parser.parse_model(mask)).graph.node].count(
        "Relu"
    ) == 1
