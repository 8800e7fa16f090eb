from pathlib import Path

import numpy as np
import onnx
import pytest
from tightrope.errors import TightropeError
from tightrope.inputs.arrays import Arrays, stack
from tightrope.int8.calibrate import read_cache, write_cache
from tightrope.int8.quantize import quantize_onnx
from tightrope.int8.repairs import smoothed, smoothing
from tightrope.onnx.edit import dequantized_weight, weight
from tightrope.onnx.file import load_onnx
from tightrope.onnx.session import run_onnx
from tightrope.onnx.weights import weighted_nodes
from tiny_model import TinyModel, evaluation_rows


@pytest.fixture(scope="module")
def batches(tiny: TinyModel) -> list[Arrays]:
    rows = evaluation_rows(tiny)
    return [stack(rows[start : start + 16]) for start in range(0, 80, 16)]


@pytest.fixture(scope="module")
def cache(tiny: TinyModel) -> dict:
    return read_cache(tiny.minmax, model=tiny.simplified)


def names_of(model: onnx.ModelProto) -> list[str]:
    return [node.name for node in weighted_nodes(model)]


def smooth(tiny: TinyModel, cache: dict, strength: float) -> tuple[onnx.ModelProto, dict]:
    model = load_onnx(tiny.simplified)
    names = names_of(model)
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
    expected = run_onnx(load_onnx(tiny.simplified), batches, threads=1)
    for ours, theirs in zip(run_onnx(model, batches, threads=1), expected, strict=True):
        np.testing.assert_allclose(ours, theirs, atol=2e-4)


def test_channels_are_even_where_the_weights_take_all(tiny: TinyModel, cache: dict) -> None:
    model, ranges = smooth(tiny, cache, 1.0)
    for node in weighted_nodes(model):
        assert node.input[0].endswith("_smoothed")
        low, high = ranges[node.input[0]]
        # each channel was divided by its own largest value
        assert max(-low, high) == pytest.approx(1.0, rel=1e-4)
    assert len(model.graph.initializer) == len({one.name for one in model.graph.initializer})


def test_bias_correction_takes_the_mean_error_of_the_weights_away(
    tiny: TinyModel, cache: dict, tmp_path: Path
) -> None:
    """(W - rounded W)ᵀ times the mean input, computed here from the files."""
    paths = (tiny.simplified, tiny.minmax, tmp_path / "a.onnx")
    quantize_onnx(*paths, scheme="u8s8", repair={"bias_correction": True})
    source, plain = load_onnx(tiny.simplified), load_onnx(tiny.u8s8)
    found = load_onnx(tmp_path / "a.onnx")
    name = "bert.encoder.layer.0.output.dense"
    (node,) = (one for one in weighted_nodes(source) if one.name == name)
    (twin,) = (one for one in plain.graph.node if one.name == name)
    lost = weight(source, node) - dequantized_weight(plain, twin)
    expected = np.array(cache["channels"][node.input[0]]["mean"]) @ lost
    assert np.abs(expected).max() > 1e-4

    def bias(model: onnx.ModelProto) -> np.ndarray:
        (reader,) = (one for one in model.graph.node if node.output[0] in one.input)
        constants = {one.name: onnx.numpy_helper.to_array(one) for one in model.graph.initializer}
        (added,) = (name for name in reader.input if name in constants)
        return constants[added]

    np.testing.assert_allclose(bias(found) - bias(plain), expected, atol=1e-6)
    assert len(found.graph.node) == len(plain.graph.node)


def test_both_repairs_go_together(tiny: TinyModel, batches: list[Arrays], tmp_path: Path) -> None:
    repair = {"smoothquant": 0.5, "bias_correction": True, "float": ["classifier"]}
    paths = (tiny.simplified, tiny.minmax, tmp_path / "a.onnx")
    quantize_onnx(*paths, scheme="u8s8", repair=repair)
    model = load_onnx(tmp_path / "a.onnx")
    onnx.checker.check_model(model, full_check=True)
    expected = run_onnx(load_onnx(tiny.simplified), batches, threads=1)
    found = run_onnx(model, batches, threads=1)
    same = np.concatenate(found).argmax(1) == np.concatenate(expected).argmax(1)
    assert same.mean() > 0.98


@pytest.mark.parametrize("repair", [{"smoothquant": 0.5}, {"bias_correction": True}], ids=str)
def test_a_cache_without_channels_repairs_nothing(
    tiny: TinyModel, cache: dict, tmp_path: Path, repair: dict
) -> None:
    write_cache(tmp_path / "a.json", **{**cache, "channels": {}})
    paths = (tiny.simplified, tmp_path / "a.json", tmp_path / "a.onnx")
    with pytest.raises(TightropeError, match=r"no .* of the channels of layer_norm.*: calibrate"):
        quantize_onnx(*paths, scheme="u8s8", repair=repair)


def test_a_weight_that_two_operators_share_is_smoothed_for_each(tmp_path: Path) -> None:
    draw = np.random.default_rng(0)
    table, shared = (draw.standard_normal((8, 8)).astype(np.float32) for _ in range(2))
    table[:, 0] *= 50
    nodes = [
        onnx.helper.make_node("Gather", ["table", "input_ids"], ["x"], name="lookup"),
        onnx.helper.make_node("MatMul", ["x", "w"], ["y"], name="first"),
        onnx.helper.make_node("Relu", ["y"], ["z"], name="relu"),
        onnx.helper.make_node("MatMul", ["z", "w"], ["logits"], name="second"),
    ]
    constants = {"table": table, "w": shared}
    graph = onnx.helper.make_graph(
        nodes,
        "shared",
        [onnx.helper.make_tensor_value_info("input_ids", onnx.TensorProto.INT64, ["n"])],
        [onnx.helper.make_tensor_value_info("logits", onnx.TensorProto.FLOAT, None)],
        [onnx.numpy_helper.from_array(array, name) for name, array in constants.items()],
    )
    opset = [onnx.helper.make_opsetid("", 21)]
    model = onnx.helper.make_model(graph, opset_imports=opset, ir_version=10)
    batch = {"input_ids": np.arange(8)}
    first = np.maximum(table @ shared, 0)
    bounds = {"x": table, "z": first}
    channels = {
        name: {"low": list(v.min(0)), "high": list(v.max(0)), "mean": list(v.mean(0))}
        for name, v in bounds.items()
    }
    found, _ = smoothed(model, {}, channels, ["first", "second"], strength=0.8)
    np.testing.assert_allclose(
        run_onnx(found, [batch], threads=1)[0], first @ shared, rtol=2e-4, atol=1e-3
    )
