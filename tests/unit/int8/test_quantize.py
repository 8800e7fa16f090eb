from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import NodeProto, numpy_helper
from onnx_text import constants_of, drawn, makers_of, onnx_model
from quantized_files import answers, quantized, with_ranges
from tightrope.errors import ArtifactError, ConfigError, TightropeError
from tightrope.inputs.arrays import Arrays
from tightrope.int8.calibrate import read_cache, write_cache
from tightrope.int8.quantize import in_qdq, quantize_onnx, smoothed, smoothing, smoothing_of
from tightrope.int8.schemes import SCHEMES
from tightrope.onnx.edit import constant_of, dequantized_weight, rows_of, weighted_nodes
from tightrope.onnx.file import load_onnx, save_onnx
from tiny_convolutions import make_convolutions, pictures, ranges_of
from tiny_model import TinyModel

WEIGHTED = ("MatMul", "Gemm", "Conv")
EACH = pytest.mark.parametrize("scheme", ["u8s8", "s8s8", "e4m3"])
FOR_TENSORRT = pytest.mark.parametrize("scheme", ["s8s8", "e4m3"])
PAIR = ("QuantizeLinear", "DequantizeLinear")
# of the last layer the classifier reads one row per example
PARTS = ["attention.self.query", "attention.output.dense", "intermediate.dense", "output.dense"]
ONE_ROW = [*(f"bert.encoder.layer.1.{part}" for part in PARTS), "bert.pooler.dense", "classifier"]


class Graph:
    """A quantized graph by name: what makes each tensor, and what the constants hold."""

    def __init__(self, model: onnx.ModelProto) -> None:
        self.model, self.nodes = model, list(model.graph.node)
        self.makers, self.constants = makers_of(model), constants_of(model)

    def of_kind(self, *kinds: str) -> Iterator[NodeProto]:
        return (node for node in self.nodes if node.op_type in kinds)

    def is_weight(self, name: str) -> bool:
        """Whether the tensor is a constant, seen through quantize and dequantize."""
        while name in self.makers and self.makers[name].op_type in PAIR:
            name = self.makers[name].input[0]
        return name in self.constants

    def dequantized(self, name: str) -> bool:
        return name in self.makers and self.makers[name].op_type == "DequantizeLinear"

    def weighted(self) -> list[NodeProto]:
        return [node for node in self.of_kind(*WEIGHTED) if self.is_weight(node.input[1])]

    def in_eight_bits(self) -> list[NodeProto]:
        return [node for node in self.weighted() if self.dequantized(node.input[1])]

    def activations(self) -> list[NodeProto]:
        """What quantizes them."""
        return [n for n in self.of_kind("QuantizeLinear") if not self.is_weight(n.input[0])]


@pytest.fixture(scope="module")
def graphs(tiny: TinyModel) -> dict[str, Graph]:
    return {one: Graph(load_onnx(getattr(tiny, one))) for one in ("u8s8", "s8s8", "e4m3")}


@EACH
def test_files_are_valid_small_and_repeatable(tiny: TinyModel, tmp_path: Path, scheme: str) -> None:
    path = getattr(tiny, scheme)
    onnx.checker.check_model(str(path), full_check=True)
    assert path.stat().st_size < 0.8 * tiny.simplified.stat().st_size
    quantized(tiny, tmp_path / "again.onnx", scheme)
    assert (tmp_path / "again.onnx").read_bytes() == path.read_bytes()


@EACH
def test_both_inputs_of_weighted_operators_round(graphs: dict[str, Graph], scheme: str) -> None:
    """For TensorRT but those of one row per example, for which it has no faster kernel."""
    graph = graphs[scheme]
    found = graph.in_eight_bits()
    assert len(graph.weighted()) == 14
    left = [node.name for node in graph.weighted() if node not in found]
    assert left == ([] if scheme == "u8s8" else ONE_ROW)
    for node in found:
        assert all(graph.dequantized(name) for name in node.input[:2]), node.name


def test_weights_are_right_to_half_a_step(tiny: TinyModel, graphs: dict[str, Graph]) -> None:
    """Those of TensorRT's files: tests/unit/engines/tensorrt/test_typed_onnx.py."""
    graph, floats = graphs["u8s8"], constants_of(load_onnx(tiny.simplified))
    for node in graph.in_eight_bits():
        dequantize = graph.makers[node.input[1]]
        weight, scale, zero = (graph.constants[name] for name in dequantize.input)
        assert (weight.dtype, zero.dtype, zero.any()) == (np.int8, np.int8, False)
        (axis,) = [one.i % 2 for one in dequantize.attribute if one.name == "axis"]
        transposed = any(one.name == "transB" and one.i for one in node.attribute)
        assert axis == (0 if transposed else 1)
        assert scale.size == weight.shape[axis] and (scale > 0).all()
        assert np.abs(weight.astype(int)).max() == 127
        original = floats[dequantize.input[0].removesuffix("_quantized")]
        scale = scale[:, None] if axis == 0 else scale[None, :]
        assert (np.abs(weight * scale - original) <= 0.501 * scale).all()
    assert len(graph.activations()) > 4
    for node in graph.activations():
        scale, zero = (graph.constants[name] for name in node.input[1:])
        assert (scale.size, zero.dtype) == (1, np.uint8)


def test_without_vnni_weights_stay_within_seven_bits(tiny: TinyModel, tmp_path: Path) -> None:
    graph = Graph(quantized(tiny, tmp_path / "a.onnx", "u8s7"))
    for node in graph.weighted():
        weight = graph.constants[graph.makers[node.input[1]].input[0]]
        assert np.abs(weight.astype(int)).max() == 64


def test_layernorm_softmax_and_attention_products_stay_float(graphs: dict[str, Graph]) -> None:
    graph = graphs["u8s8"]
    floats = list(graph.of_kind("LayerNormalization", "Softmax", "Gelu", "Erf"))
    products = [node for node in graph.of_kind("MatMul") if not graph.is_weight(node.input[1])]
    assert len(products) == 4  # two of each layer
    assert {"LayerNormalization", "Softmax"} <= {node.op_type for node in floats}
    for node in (*floats, *products):
        inputs = [name for name in node.input if name not in graph.constants]
        assert not [name for name in inputs if graph.dequantized(name)], node.name


@FOR_TENSORRT
def test_for_tensorrt_only_products_and_skips_round(graphs: dict[str, Graph], scheme: str) -> None:
    """The row of the last layer is taken from the tensor that was not rounded."""
    graph = graphs[scheme]
    others = [node for node in graph.nodes if node.op_type not in PAIR]
    consumers = [node for node in others if any(map(graph.dequantized, node.input))]
    products = {node.name for node in graph.in_eight_bits()}
    sums = [node for node in consumers if node.name not in products]
    assert {node.name for node in consumers} > products
    assert [node.op_type for node in sums] == ["Add"] * 2  # of the first layer
    for node in sums:
        (skip,) = (name for name in node.input if graph.dequantized(name))
        assert any(skip in one.input for one in graph.weighted()), node.name


@FOR_TENSORRT
def test_skips_stay_rounded_under_smoothquant(tiny: TinyModel, tmp_path: Path, scheme: str) -> None:
    smoothed = Graph(quantized(tiny, tmp_path / "a.onnx", scheme, smoothquant=0.5))
    added = [name for node in smoothed.of_kind("Add") for name in node.input]
    assert len([name for name in added if smoothed.dequantized(name)]) == 2
    for node in smoothed.of_kind("Mul"):
        assert not [name for name in node.input if smoothed.dequantized(name)], node.name


@pytest.mark.parametrize(("scheme", "tolerance"), [("u8s8", 0.05), ("s8s8", 0.05), ("e4m3", 0.15)])
def test_answers_are_those_of_the_float_model(tiny, batches, scheme, tolerance) -> None:
    """The tolerance is relative to the largest logit."""
    found, expected = (answers(one, batches) for one in (getattr(tiny, scheme), tiny.simplified))
    assert 1e-5 < np.abs(found - expected).max() / np.abs(expected).max() <= tolerance
    np.testing.assert_array_equal(found.argmax(1), expected.argmax(1))


@pytest.mark.parametrize(
    ("scheme", "repair"),
    [
        ("u8s8", {"smoothquant": 0.5, "bias_correction": True, "float": ["classifier"]}),
        ("s8s8", {"bias_correction": True}),
        ("e4m3", {"smoothquant": 0.5}),
        ("e4m3", {"outputs": True}),
        ("s8s8", {"attention": True, "bias_correction": True, "outputs": True}),
        ("e4m3", {"attention": True, "smoothquant": 0.5, "float": ["*layer.1.*"]}),
    ],
    ids=str,
)
def test_files_with_repairs_keep_the_predictions(tiny, batches, tmp_path, scheme, repair) -> None:
    model = quantized(tiny, tmp_path / "a.onnx", scheme, **repair)
    onnx.checker.check_model(model, full_check=True)
    plain, found, expected = (
        answers(one, batches) for one in (getattr(tiny, scheme), model, tiny.simplified)
    )
    assert (found.argmax(1) == expected.argmax(1)).mean() > 0.98
    assert (found != plain).any()


@FOR_TENSORRT
def test_the_ranges_of_the_cache_decide_the_scales(tiny, graphs, tmp_path, scheme) -> None:
    known = cache_of(tiny)["ranges"]
    doubled = {name: [2 * low, 2 * high] for name, (low, high) in known.items()}
    cache = with_ranges(tiny, tmp_path / "a.json", doubled)
    wide = Graph(quantized(tiny, tmp_path / "wide.onnx", scheme, cache=cache))
    for name in {node.input[1] for node in graphs[scheme].activations()}:
        usual = graphs[scheme].constants[name]
        np.testing.assert_allclose(wide.constants[name], 2 * usual, rtol=1e-6)
        low, high = known[name.removesuffix("_scale")]
        largest = {"s8s8": 127, "e4m3": 448}[scheme]
        assert usual == pytest.approx(max(-low, high) / largest, rel=2**-11)


def test_what_is_always_zero_has_a_scale_of_float16(tiny: TinyModel, tmp_path: Path) -> None:
    cache = with_ranges(tiny, tmp_path / "a.json", {"gelu": [0, 0]})
    model = quantized(tiny, tmp_path / "a.onnx", "s8s8", cache=cache)
    assert constants_of(model)["gelu_scale"] == 2**-14


@pytest.mark.parametrize(
    ("scheme", "gelu", "repair", "said"),
    [
        ("s8s8", [0, 1e8], {}, r"gelu: values up to 1e\+08 are beyond float16; leave"),
        ("u8s8", [], {}, r"a\.json: has no range for gelu .*; calibrate"),
        ("s8s8", [], {}, r"a\.json: has no range for gelu .*; calibrate"),
        (
            "s8s8",
            [0, 1],
            {"activations": "asymmetric"},
            "TensorRT has zero-point 0 only: take .* o",
        ),
        ("u8s8", [0, 1], {"float": ["*.outptu"]}, r"is named \*\.outptu: correct .*pooler\.dense"),
        ("u8s8", [0, 1], {"float": ["*"]}, "to quantize: every one is left in float"),
    ],
)
def test_ranges_and_repairs_of_no_use_are_refused(tiny, tmp_path, scheme, gelu, repair, said):
    cache = with_ranges(tiny, tmp_path / "a.json", {"gelu": gelu})
    with pytest.raises((TightropeError, ConfigError), match=said):
        quantized(tiny, tmp_path / "a.onnx", scheme, cache=cache, **repair)
    assert not (tmp_path / "a.onnx").exists()


def test_only_quantized_outputs_need_a_range(tiny: TinyModel, tmp_path: Path) -> None:
    read = {node.input[0] for node in weighted_nodes(load_onnx(tiny.simplified))}
    known = cache_of(tiny)["ranges"]
    cache = with_ranges(tiny, tmp_path / "a.json", {name: [] for name in known.keys() - read})
    quantized(tiny, tmp_path / "a.onnx", cache=cache)
    assert (tmp_path / "a.onnx").read_bytes() == tiny.u8s8.read_bytes()
    with pytest.raises(TightropeError, match=r"a\.json: has no range for"):
        quantized(tiny, tmp_path / "b.onnx", cache=cache, outputs=True)


def test_another_models_cache_and_no_weights_are_refused(tiny: TinyModel, tmp_path: Path) -> None:
    target = tmp_path / "a.onnx"
    model = load_onnx(tiny.simplified)
    model.graph.name = "other"
    save_onnx(model, tmp_path / "other.onnx")
    with pytest.raises(ArtifactError, match=r"minmax-24\.json: the cache of another model than"):
        quantize_onnx(tmp_path / "other.onnx", tiny.minmax, target, scheme="u8s8")
    square = onnx_model("net (float[2, 2] x) => (float[2, 2] y) { y = MatMul (x, x) }")
    save_onnx(square, tmp_path / "square.onnx")
    with pytest.raises(TightropeError, match=r"square\.onnx: no Conv, Gemm, MatMul with weights"):
        quantize_onnx(tmp_path / "square.onnx", tiny.minmax, target, scheme="u8s8")
    assert not target.exists()


def test_outputs_stay_in_float_unless_repairs_say_otherwise(tiny, graphs, tmp_path) -> None:
    def readers_of_outputs(graph: Graph) -> set[str]:
        outputs = {node.output[0] for node in graph.weighted()}
        return {node.op_type for node in graph.nodes if outputs & set(node.input)}

    def zero_points(graph: Graph) -> set[int]:
        return {int(graph.constants[node.input[2]]) for node in graph.activations()}

    plain, options = graphs["u8s8"], {"outputs": True, "activations": "symmetric"}
    assert "QuantizeLinear" not in readers_of_outputs(plain)
    usual = Graph(quantized(tiny, tmp_path / "a.onnx", **options))
    assert readers_of_outputs(usual) == {"QuantizeLinear"}
    assert len(zero_points(plain)) > 1 and zero_points(usual) <= {127, 128}


def test_all_in_float_is_the_model(tiny: TinyModel, batches: list[Arrays], tmp_path: Path) -> None:
    found = quantized(tiny, tmp_path / "a.onnx", may_stay_in_float=True, float=["*"])
    np.testing.assert_array_equal(answers(found, batches), answers(tiny.simplified, batches))


@pytest.mark.parametrize(("bias", "maker"), [(1e-12, "DequantizeLinear"), (3.0, None)])
def test_a_bias_that_integers_cannot_hold_stays_in_float(bias: float, maker: str | None) -> None:
    """Of a convolution whose first channel has nearly no weights."""
    model, copy = make_convolutions(), onnx.ModelProto()
    for tensor in model.graph.initializer:
        if tensor.name in ("stem_weight", "stem_bias"):
            array = numpy_helper.to_array(tensor).copy()
            array[0] = bias if tensor.name == "stem_bias" else 1e-12
            tensor.CopyFrom(numpy_helper.from_array(array, tensor.name))
    copy.CopyFrom(model)
    ranges = ranges_of(model, pictures(8, seed=0))
    found = in_qdq(copy, ranges, ["stem"], SCHEMES["u8s8"], {})
    (stem,) = (node for node in found.graph.node if node.name == "stem")
    made = makers_of(found).get(stem.input[2])
    assert (made.op_type if made else None) == maker
    batch = [{"pixel_values": pictures(4, seed=1)}]
    expected, logits = (answers(one, batch) for one in (model, found))
    assert np.linalg.norm(logits - expected) < 0.1 * np.linalg.norm(expected)


def cache_of(tiny: TinyModel) -> dict[str, Any]:
    return read_cache(tiny.minmax, model=tiny.simplified)


def smooth(tiny: TinyModel, strength: float, only: int = 14) -> tuple[onnx.ModelProto, dict]:
    """The model with so many operators smoothed, and its ranges."""
    model, cache = load_onnx(tiny.simplified), cache_of(tiny)
    names = [node.name for node in weighted_nodes(model)][:only]
    return smoothed(model, cache["ranges"], cache["channels"], names, strength=strength)


def test_the_factor_is_that_of_the_paper() -> None:
    """Xiao et al. 2023, equation 4: s = max|x|^a / max|w|^(1 - a)."""
    activations, weights = np.array([16.0, 1.0, 4.0]), np.array([1.0, 1.0, 0.25])
    assert smoothing(activations, weights, 0.5) == pytest.approx([4.0, 1.0, 4.0])
    assert smoothing(activations, weights, 1.0) == pytest.approx(activations)
    assert smoothing(activations, weights, 0.0) == pytest.approx([1.0, 1.0, 4.0])
    assert smoothing(np.array([0.0, 2.0]), np.array([1.0, 0.0]), 0.5).tolist() == [1, 1]


def test_channels_are_even_where_either_side_takes_all(tiny: TinyModel) -> None:
    model, ranges = smooth(tiny, 1.0)
    for node in weighted_nodes(model):
        assert node.input[0].endswith("_smoothed")
        low, high = ranges[node.input[0]]
        # each channel was divided by its own largest value
        assert max(-low, high) == pytest.approx(1.0, rel=1e-4)
    assert len(model.graph.initializer) == len({one.name for one in model.graph.initializer})
    model, ranges = smooth(tiny, 0.0)
    rows: dict[str, list[np.ndarray]] = {}
    for node in weighted_nodes(model):
        largest = np.abs(rows_of(node, constant_of(model, node.input[1]))).max(1)
        rows.setdefault(node.input[0], []).append(largest)
    # query, key and value read one tensor: its factors are those of all three, whatever is chosen
    for values in rows.values():
        np.testing.assert_allclose(np.max(values, axis=0), 1.0, rtol=1e-4)
    first = weighted_nodes(model)[0].input[0]
    assert smooth(tiny, 0.0, only=1)[1][first] == ranges[first]


@pytest.mark.parametrize("repair", [{}, {"smoothquant": 0.5}], ids=str)
def test_bias_correction_removes_the_mean_error(tiny, tmp_path, repair: dict[str, float]) -> None:
    """(W - rounded W)ᵀ times the mean input, computed here from the files."""
    source = smooth(tiny, 0.5)[0] if repair else load_onnx(tiny.simplified)
    plain = quantized(tiny, tmp_path / "a.onnx", **repair)
    found = quantized(tiny, tmp_path / "b.onnx", **repair, bias_correction=True)
    name = "bert.encoder.layer.0.output.dense"
    (node,) = (one for one in weighted_nodes(source) if one.name == name)
    (twin,) = (one for one in plain.graph.node if one.name == name)
    lost = constant_of(source, node.input[1]) - dequantized_weight(plain, twin)
    mean = np.array(cache_of(tiny)["channels"][node.input[0].removesuffix("_smoothed")]["mean"])
    expected = (mean * smoothing_of(source, node.input[0])) @ lost
    assert np.abs(expected).max() > 1e-4

    def bias(model: onnx.ModelProto) -> np.ndarray:
        (reader,) = (one for one in model.graph.node if node.output[0] in one.input)
        constants = constants_of(model)
        (added,) = (name for name in reader.input if name in constants)
        return constants[added]

    np.testing.assert_allclose(bias(found) - bias(plain), expected, atol=1e-6)
    assert len(found.graph.node) == len(plain.graph.node)


@pytest.mark.parametrize("repair", [{"smoothquant": 0.5}, {"bias_correction": True}], ids=str)
def test_without_channels_no_repair(tiny: TinyModel, tmp_path: Path, repair: dict) -> None:
    write_cache(tmp_path / "a.json", **{**cache_of(tiny), "channels": {}})
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
