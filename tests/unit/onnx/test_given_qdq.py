"""Q/DQ in an ONNX file is compared with what the configuration says of it."""

import onnx
import pytest
from given_files import given_model, quantized_by_onnxruntime
from onnx import helper
from onnxruntime.quantization import QuantFormat
from tightrope.errors import TightropeError
from tightrope.onnx.float_model import is_quantized, require_as_said
from tiny_convolutions import make_convolutions


def test_a_file_with_qdq_needs_the_key_and_one_without_takes_none() -> None:
    require_as_said(given_model("u8s8"), "onnx:m", quantized=True)
    require_as_said(make_convolutions(), "onnx:m", quantized=False)
    with pytest.raises(TightropeError, match=r"^onnx:m: is quantized already .*quantized: true"):
        require_as_said(given_model("u8s8"), "onnx:m", quantized=False)
    with pytest.raises(TightropeError, match=r"^onnx:m: has no QuantizeLinear.*remove `quantized`"):
        require_as_said(make_convolutions(), "onnx:m", quantized=True)


@pytest.mark.parametrize("quantized", [True, False])
def test_operators_in_integers_are_refused_whatever_is_said(quantized: bool) -> None:
    model = quantized_by_onnxruntime(make_convolutions(), quant_format=QuantFormat.QOperator)
    with pytest.raises(TightropeError, match=r"QLinear.* integers itself; .*QuantFormat.QDQ"):
        require_as_said(model, "onnx:m", quantized=quantized)


def test_qdq_in_a_branch_alone_is_seen_and_refused() -> None:
    pair = [
        helper.make_node("QuantizeLinear", ["x", "scale", "zero"], ["q"]),
        helper.make_node("DequantizeLinear", ["q", "scale", "zero"], ["d"]),
    ]
    value = helper.make_tensor_value_info("d", onnx.TensorProto.FLOAT, ["n"])
    branch = helper.make_graph(pair, "branch", [], [value])
    node = helper.make_node("If", ["flag"], ["y"], then_branch=branch, else_branch=branch)
    model = helper.make_model(helper.make_graph([node], "net", [], []))
    assert is_quantized(model)
    with pytest.raises(TightropeError, match=r"Q/DQ inside a branch or loop"):
        require_as_said(model, "onnx:m", quantized=True)


def test_operators_of_tensorrt_alone_are_refused() -> None:
    node = helper.make_node("TRT_FP8QuantizeLinear", ["x", "scale"], ["q"], domain="trt")
    model = helper.make_model(helper.make_graph([node], "net", [], []))
    with pytest.raises(TightropeError, match=r"TRT_FP8QuantizeLinear is an operator of TensorRT"):
        require_as_said(model, "onnx:m", quantized=True)
