from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx_text import constants_of, drawn, onnx_model
from quantized_files import answers, quantized
from tightrope.errors import TightropeError
from tightrope.inputs.arrays import Arrays
from tightrope.int8.calibrate import read_cache, write_cache
from tightrope.int8.repairs import smoothed, smoothing
from tightrope.onnx.edit import dequantized_weight, weight
from tightrope.onnx.file import load_onnx
from tightrope.onnx.weights import weighted_nodes
from tiny_model import TinyModel


@pytest.fixture(scope="module")
def cache(tiny: TinyModel) -> dict:
    return read_cache(tiny.minmax, model=tiny.simplified)


def smooth(tiny: TinyModel, cache: dict, strength: float) -> tuple[onnx.ModelProto, dict]:
    model = load_onnx(tiny.simplified)
    names = [node.name for node in weighted_nodes(model)]
    return smoothed(model, cache["ranges"], cache["channels"], names, strength=strength)


def test_the_factor_is_that_of_the_paper() -> None:
    """Xiao et al. 2023, equation 4: s = max|x|^a / max|w|^(1 - a)."""
    activations, weights = np.array([16.0, 1.0, 4.0]), np.array([1.0, 1.0, 0.25])
    assert smoothing(activations, weights, 0.5) == pytest.approx([4.0, 1.0, 4.0])
    assert smoothing(activations, weights, 1.0) == pytest.approx(activations)
    assert smoothing(activations, weights, 0.0) == pytest.approx([1.0, 1.0, 4.0])
    assert smoothing(np.array([0.0, 2.0]), np.array([1.0, 0.0]), 0.5).tolist() == [1, 1]


def test_a_smoothed_model_computes_the_same(
    tiny: TinyModel, cache: dict, batches: list[Arrays]
) -> None:
    model, _ = smooth(tiny, cache, 0.5)
    onnx.checker.check_model(model, full_check=True)
    np.testing.assert_allclose(
        answers(model, batches), answers(tiny.simplified, batches), atol=2e-4
    )


def test_channels_are_even_where_the_weights_take_all(tiny: TinyModel, cache: dict) -> None:
    model, ranges = smooth(tiny, cache, 1.0)
    for node in weighted_nodes(model):
        assert node.input[0].endswith("_smoothed")
        low, high = ranges[node.input[0]]
        # each channel was divided by its own largest value
        assert max(-low, high) == pytest.approx(1.0, rel=1e-4)
    assert len(model.graph.initializer) == len({one.name for one in model.graph.initializer})


def test_bias_correction_removes_the_mean_error(
    tiny: TinyModel, cache: dict, tmp_path: Path
) -> None:
    """(W - rounded W)ᵀ times the mean input, computed here from the files."""
    source, plain = load_onnx(tiny.simplified), load_onnx(tiny.u8s8)
    found = quantized(tiny, tmp_path / "a.onnx", bias_correction=True)
    name = "bert.encoder.layer.0.output.dense"
    (node,) = (one for one in weighted_nodes(source) if one.name == name)
    (twin,) = (one for one in plain.graph.node if one.name == name)
    lost = weight(source, node) - dequantized_weight(plain, twin)
    expected = np.array(cache["channels"][node.input[0]]["mean"]) @ lost
    assert np.abs(expected).max() > 1e-4

    def bias(model: onnx.ModelProto) -> np.ndarray:
        (reader,) = (one for one in model.graph.node if node.output[0] in one.input)
        constants = constants_of(model)
        (added,) = (name for name in reader.input if name in constants)
        return constants[added]

    np.testing.assert_allclose(bias(found) - bias(plain), expected, atol=1e-6)
    assert len(found.graph.node) == len(plain.graph.node)


@pytest.mark.parametrize("repair", [{"smoothquant": 0.5}, {"bias_correction": True}], ids=str)
def test_a_cache_without_channels_repairs_nothing(
    tiny: TinyModel, cache: dict, tmp_path: Path, repair: dict
) -> None:
    write_cache(tmp_path / "a.json", **{**cache, "channels": {}})
    with pytest.raises(TightropeError, match=r"no .* of the channels of layer_norm.*: calibrate"):
        quantized(tiny, tmp_path / "a.onnx", cache=tmp_path / "a.json", **repair)


SHARED = """net (int64[n] input_ids) => (float[n, 8] logits) {
    x = Gather (table, input_ids)
    [first] y = MatMul (x, w)
    z = Relu (y)
    [second] logits = MatMul (z, w)
}"""


def test_a_weight_that_two_operators_share_is_smoothed_for_each() -> None:
    table, shared = drawn(8, 8), drawn(8, 8, seed=1)
    table[:, 0] *= 50
    first = np.maximum(table @ shared, 0)
    channels = {
        name: {"low": list(v.min(0)), "high": list(v.max(0)), "mean": list(v.mean(0))}
        for name, v in {"x": table, "z": first}.items()
    }
    model = onnx_model(SHARED, table=table, w=shared)
    found, _ = smoothed(model, {}, channels, ["first", "second"], strength=0.8)
    logits = answers(found, [{"input_ids": np.arange(8)}])
    np.testing.assert_allclose(logits, first @ shared, rtol=2e-4, atol=1e-3)
