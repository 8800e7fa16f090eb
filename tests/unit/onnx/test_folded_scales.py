"""A factor behind a linear layer becomes part of its weights; any other stays."""

import numpy as np
import onnx
import pytest
from onnx_text import drawn, kinds, onnx_model
from tightrope.onnx.session import run_onnx
from tightrope.onnx.simplify import with_scales_folded

TEXT = """net (float[2, 3, 4] x) => (float[] y) {{
    product = MatMul (x, weight)
    layer = Add (product, bias)
    {}
}}"""
FOLDED = {
    "values only move between": """split = Reshape (layer, heads)
        query = Transpose <perm = [0, 2, 1, 3]> (split)
        scaled = Mul (query, factor)
        y = Relu (scaled)""",
    "another layer reads the weights, as in ALBERT": """scaled = Mul (factor, layer)
        product_2 = MatMul (x, weight)
        layer_2 = Add (product_2, bias)
        y = Sub (scaled, layer_2)""",
}
STAYING = {
    "a factor per channel": "scaled = Mul (layer, factors)\ny = Relu (scaled)",
    "no layer before it": "scaled = Mul (x, factor)\ny = Add (scaled, layer)",
    "an activation between": "positive = Relu (layer)\nz = Mul (positive, factor)\ny = Neg (z)",
    "a layer that others read": "scaled = Mul (layer, factor)\ny = Add (scaled, layer)",
    "moved values that others read": """split = Reshape (layer, heads)
        scaled = Mul (split, factor)
        y = Add (scaled, split)""",
    "the output of the model": "y = Mul (layer, factor)",
}


def model_of(lines: str) -> onnx.ModelProto:
    numbers = {"weight": drawn(4, 4), "bias": drawn(4, seed=1), "factors": drawn(4, seed=2)}
    return onnx_model(TEXT.format(lines), factor=0.3, heads=[2, 3, 2, 2], **numbers)


def output(model: onnx.ModelProto) -> np.ndarray:
    return run_onnx(model, [{"x": drawn(2, 3, 4, seed=3)}], threads=1)[0]


@pytest.mark.parametrize("why", FOLDED)
def test_the_factor_is_gone_and_the_outputs_stay(why: str) -> None:
    model = model_of(FOLDED[why])
    folded = with_scales_folded(model)
    assert kinds(folded) == [kind for kind in kinds(model) if kind != "Mul"] != kinds(model)
    np.testing.assert_allclose(output(folded), output(model), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("why", STAYING)
def test_another_factor_stays(why: str) -> None:
    model = model_of(STAYING[why])
    folded = with_scales_folded(model)
    assert kinds(folded) == kinds(model)
    np.testing.assert_array_equal(output(folded), output(model))
