"""Q/DQ that TensorRT cannot run is refused before a build, by its node and with the remedy."""

import numpy as np
import onnx
import pytest
from given_files import KINDS, given_model, in_float16
from onnx import numpy_helper
from tightrope.errors import WorkFailed
from tightrope.runtimes.tensorrt.given_onnx import require_supported_qdq


def reason(model: onnx.ModelProto) -> str:
    with pytest.raises(WorkFailed) as caught:
        require_supported_qdq(model)
    assert caught.value.transient is False
    assert "\n" not in caught.value.reason
    assert "quantize symmetrically in int8 or E4M3" in caught.value.reason
    return caught.value.reason


def with_constant(model: onnx.ModelProto, name: str, array: np.ndarray) -> onnx.ModelProto:
    (tensor,) = (one for one in model.graph.initializer if one.name == name)
    tensor.CopyFrom(numpy_helper.from_array(array, name))
    return model


@pytest.mark.parametrize("way", ["s8s8", "pairs", *KINDS])
def test_zero_points_0_in_int8_and_e4m3_are_accepted(way: str) -> None:
    require_supported_qdq(given_model(way))


def test_so_is_a_file_in_float16() -> None:
    require_supported_qdq(in_float16(given_model("pairs")))


def test_asymmetric_activations_are_refused_with_node_and_zero_point() -> None:
    told = reason(given_model("u8s8"))
    zero = "pixel_values_QuantizeLinear with the zero-point "
    assert f"TensorRT cannot run QuantizeLinear {zero}" in told
    assert " of type uint8: " in told


def test_another_zero_point_in_int8_is_refused() -> None:
    given = with_constant(given_model("tensorrt"), "stem_zero_point", np.array(3, np.int8))
    assert "QuantizeLinear stem_QuantizeLinear with the zero-point 3 of type int8" in reason(given)


def test_a_missing_zero_point_of_activations_is_uint8_for_onnx_and_int8_for_tensorrt() -> None:
    given = given_model("tensorrt")
    node = next(one for one in given.graph.node if one.op_type == "QuantizeLinear")
    del node.input[2]
    assert f"{node.name} with the type uint8" in reason(given)
    node.attribute.append(onnx.helper.make_attribute("output_dtype", onnx.TensorProto.INT8))
    require_supported_qdq(given)


def test_a_bias_in_int32_is_refused_and_the_key_against_it_is_told() -> None:
    given = given_model("tensorrt")
    given.graph.initializer.append(numpy_helper.from_array(np.zeros(4, np.int32), "bias"))
    inputs = ["bias", given.graph.node[0].input[1]]
    given.graph.node.append(onnx.helper.make_node("DequantizeLinear", inputs, ["b"]))
    told = reason(given)
    assert "DequantizeLinear b with the type int32" in told
    assert "QuantizeBias=False" in told


def test_a_zero_point_that_is_computed_is_refused() -> None:
    given = given_model("tensorrt")
    next(one for one in given.graph.node if one.op_type == "QuantizeLinear").input[2] = "made"
    assert "with a zero-point, made, that is no constant" in reason(given)
