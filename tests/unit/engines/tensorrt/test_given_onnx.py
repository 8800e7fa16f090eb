"""Q/DQ that TensorRT cannot run is refused before a build, by its node and with the remedy."""

from collections.abc import Callable

import numpy as np
import onnx
import pytest
from given_files import KINDS, given_model, in_float16
from onnx import NodeProto, numpy_helper
from tightrope.engines.tensorrt_onnx import require_supported_qdq
from tightrope.errors import WorkFailed

Change = Callable[[onnx.ModelProto, NodeProto], object]


def given(change: Change) -> onnx.ModelProto:
    """A file for TensorRT after a change of it or of its first QuantizeLinear."""
    model = given_model("tensorrt")
    change(model, next(one for one in model.graph.node if one.op_type == "QuantizeLinear"))
    return model


def zero_point_of_3(model: onnx.ModelProto, node: NodeProto) -> None:
    (zero,) = (one for one in model.graph.initializer if one.name == "stem_zero_point")
    zero.CopyFrom(numpy_helper.from_array(np.array(3, np.int8), zero.name))


def bias_in_int32(model: onnx.ModelProto, node: NodeProto) -> None:
    model.graph.initializer.append(numpy_helper.from_array(np.zeros(4, np.int32), "bias"))
    inputs = ["bias", node.input[1]]
    model.graph.node.append(onnx.helper.make_node("DequantizeLinear", inputs, ["b"]))


def int8_without_zero_point(model: onnx.ModelProto, node: NodeProto) -> None:
    node.input.pop()
    node.attribute.append(onnx.helper.make_attribute("output_dtype", onnx.TensorProto.INT8))


@pytest.mark.parametrize("way", ["s8s8", "pairs", *KINDS])
def test_zero_points_0_in_int8_and_e4m3_are_accepted(way: str) -> None:
    require_supported_qdq(given_model(way))
    # and a file in float16, and one without zero-points that says int8
    require_supported_qdq(in_float16(given_model("pairs")))
    require_supported_qdq(given(int8_without_zero_point))


ASYMMETRIC = "TensorRT cannot run QuantizeLinear pixel_values_QuantizeLinear with the zero-point "


@pytest.mark.parametrize(
    ("model", "words"),
    [
        (given_model("u8s8"), f"{ASYMMETRIC}.* of type uint8: "),
        (given(zero_point_of_3), "stem_QuantizeLinear with the zero-point 3 of type int8"),
        # uint8 for ONNX, int8 for TensorRT
        (given(lambda _, node: node.input.pop()), "_QuantizeLinear with the type uint8"),
        (given(bias_in_int32), "DequantizeLinear b with the type int32.*QuantizeBias=False"),
        (given(lambda _, node: node.input.__setitem__(2, "made")), "made, that is no constant"),
    ],
)
def test_other_zero_points_and_types_are_refused(model: onnx.ModelProto, words: str) -> None:
    with pytest.raises(WorkFailed, match=words) as caught:
        require_supported_qdq(model)
    assert caught.value.transient is False
    assert "\n" not in caught.value.reason
    assert "quantize symmetrically in int8 or E4M3" in caught.value.reason
