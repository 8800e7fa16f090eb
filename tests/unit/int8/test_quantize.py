from collections.abc import Iterator
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import NodeProto, TensorProto, helper, numpy_helper
from tightrope.errors import ArtifactError, ConfigError, TightropeError
from tightrope.inputs.arrays import Arrays, stack
from tightrope.int8.calibrate import read_cache, write_cache
from tightrope.int8.quantize import quantize_onnx
from tightrope.onnx.file import load_onnx, save_onnx
from tightrope.onnx.session import run_onnx
from tightrope.onnx.weights import weighted_nodes
from tiny_model import TinyModel, evaluation_rows

WEIGHTED = ("MatMul", "Gemm", "Conv")
SCHEMES = pytest.mark.parametrize("scheme", ["u8s8", "s8s8", "e4m3"])
IN_INT8 = pytest.mark.parametrize("scheme", ["u8s8", "s8s8"])
FOR_TENSORRT = pytest.mark.parametrize("scheme", ["s8s8", "e4m3"])
E4M3 = helper.tensor_dtype_to_np_dtype(TensorProto.FLOAT8E4M3FN)


class Graph:
    """A quantized graph by name: what makes each tensor, and what the constants hold."""

    def __init__(self, path: Path) -> None:
        self.model = load_onnx(path)
        self.nodes = list(self.model.graph.node)
        self.producers = {name: node for node in self.nodes for name in node.output}
        self.constants = {
            tensor.name: numpy_helper.to_array(tensor) for tensor in self.model.graph.initializer
        }

    def of_kind(self, *kinds: str) -> Iterator[NodeProto]:
        return (node for node in self.nodes if node.op_type in kinds)

    def is_weight(self, name: str) -> bool:
        """Whether the tensor is a constant, seen through quantize and dequantize."""
        pair = ("QuantizeLinear", "DequantizeLinear")
        while name in self.producers and self.producers[name].op_type in pair:
            name = self.producers[name].input[0]
        return name in self.constants

    def dequantized(self, name: str) -> bool:
        return name in self.producers and self.producers[name].op_type == "DequantizeLinear"


@pytest.fixture(scope="module")
def graphs(tiny: TinyModel) -> dict[str, Graph]:
    return {scheme: Graph(getattr(tiny, scheme)) for scheme in ("u8s8", "s8s8", "e4m3")}


@pytest.fixture(scope="module")
def batches(tiny: TinyModel) -> list[Arrays]:
    rows = evaluation_rows(tiny)
    return [stack(rows[start : start + 16]) for start in range(0, 80, 16)]


def weighted(graph: Graph) -> list[NodeProto]:
    return [node for node in graph.of_kind(*WEIGHTED) if graph.is_weight(node.input[1])]


def in_eight_bits(graph: Graph) -> list[NodeProto]:
    return [node for node in weighted(graph) if graph.dequantized(node.input[1])]


def channel_axis(dequantize: NodeProto) -> int:
    """The axis, from the front, along which a weight of two axes has its scales."""
    (axis,) = [one.i for one in dequantize.attribute if one.name == "axis"]
    return axis % 2


@SCHEMES
def test_the_file_is_valid_and_smaller_and_a_repeat_gives_the_same_bytes(
    tiny: TinyModel, tmp_path: Path, scheme: str
) -> None:
    path = getattr(tiny, scheme)
    onnx.checker.check_model(str(path), full_check=True)
    assert path.stat().st_size < 0.8 * tiny.simplified.stat().st_size
    quantize_onnx(tiny.simplified, tiny.minmax, tmp_path / "again.onnx", scheme=scheme)
    assert (tmp_path / "again.onnx").read_bytes() == path.read_bytes()


ONE_ROW = [
    "bert.encoder.layer.1.attention.self.query",
    "bert.encoder.layer.1.attention.output.dense",
    "bert.encoder.layer.1.intermediate.dense",
    "bert.encoder.layer.1.output.dense",
    "bert.pooler.dense",
    "classifier",
]


@SCHEMES
def test_both_inputs_of_every_weighted_operator_are_quantized(
    graphs: dict[str, Graph], scheme: str
) -> None:
    """For TensorRT but those of one row per example, for which it has no faster kernel."""
    found = in_eight_bits(graphs[scheme])
    left = [node.name for node in weighted(graphs[scheme]) if node not in found]
    assert len(weighted(graphs[scheme])) == 14
    assert left == ([] if scheme == "u8s8" else ONE_ROW)
    for node in found:
        assert all(graphs[scheme].dequantized(name) for name in node.input[:2]), node.name


def test_e4m3_weights_have_one_scale(tiny: TinyModel, graphs: dict[str, Graph]) -> None:
    """With a scale per channel TensorRT computes the product in float16."""
    graph = graphs["e4m3"]
    floats = {
        one.name: numpy_helper.to_array(one) for one in load_onnx(tiny.simplified).graph.initializer
    }
    assert len(in_eight_bits(graph)) == 8
    for node in in_eight_bits(graph):
        dequantize = graph.producers[node.input[1]]
        weight, scale, zero = (graph.constants[name] for name in dequantize.input)
        original = floats[dequantize.input[0].removesuffix("_quantized")]
        assert (scale.shape, zero.shape) == ((), ())
        assert not dequantize.attribute
        assert scale == pytest.approx(max(np.abs(original).max() / 448, 2**-14), rel=2**-10)
        assert np.abs(weight.astype(np.float32) * scale - original).max() < 0.04 * scale * 448


@IN_INT8
def test_weights_are_int8_per_channel_symmetric_and_the_checkpoints_to_half_a_step(
    tiny: TinyModel, graphs: dict[str, Graph], scheme: str
) -> None:
    graph, tensors = graphs[scheme], load_onnx(tiny.simplified).graph.initializer
    floats = {tensor.name: numpy_helper.to_array(tensor) for tensor in tensors}
    for node in in_eight_bits(graph):
        dequantize = graph.producers[node.input[1]]
        weight, scale, zero = (graph.constants[name] for name in dequantize.input)
        assert (weight.dtype, zero.dtype) == (np.int8, np.int8)
        assert not zero.any()
        assert (scale > 0).all()
        transposed = any(one.name == "transB" and one.i for one in node.attribute)
        axis = channel_axis(dequantize)
        assert axis == (0 if transposed else 1)
        assert scale.size == weight.shape[axis]
        assert np.abs(weight.astype(int)).max() == 127
        original = floats[dequantize.input[0].removesuffix("_quantized")]
        scale = scale[:, None] if axis == 0 else scale[None, :]
        assert (np.abs(weight * scale - original) <= 0.501 * scale).all()


@SCHEMES
def test_activations_are_quantized_per_tensor_in_the_type_of_the_scheme(
    graphs: dict[str, Graph], scheme: str
) -> None:
    graph = graphs[scheme]
    wanted = {"u8s8": np.uint8, "s8s8": np.int8, "e4m3": E4M3}[scheme]
    activations = [
        node for node in graph.of_kind("QuantizeLinear") if not graph.is_weight(node.input[0])
    ]
    assert len(activations) > 4
    for node in activations:
        scale, zero = graph.constants[node.input[1]], graph.constants[node.input[2]]
        assert (scale.size, zero.dtype) == (1, wanted)
        assert scale > 0


@FOR_TENSORRT
def test_tensorrts_rules_hold_for_every_pair(graphs: dict[str, Graph], scheme: str) -> None:
    """TensorRT takes zero-point 0, positive scales, channels on weights only.

    The scales are numbers of float16, so that a file in that type is rounded in the same way.
    """
    graph = graphs[scheme]
    pairs = list(graph.of_kind("QuantizeLinear", "DequantizeLinear"))
    assert len(pairs) > 14
    for node in pairs:
        assert node.domain in ("", "ai.onnx")
        assert len(node.input) == 3
        scale, zero = graph.constants[node.input[1]], graph.constants[node.input[2]]
        assert zero.dtype == {"s8s8": np.int8, "e4m3": E4M3}[scheme]
        assert not zero.astype(np.float32).any()
        assert scale.dtype == np.float32
        assert (scale >= 2**-14).all()
        np.testing.assert_array_equal(scale.astype(np.float16).astype(np.float32), scale)
        assert scale.size == 1 or graph.is_weight(node.input[0])


@FOR_TENSORRT
def test_tensorrt_gets_biases_and_outputs_in_float(graphs: dict[str, Graph], scheme: str) -> None:
    graph = graphs[scheme]
    assert TensorProto.INT32 not in {
        tensor.data_type
        for tensor in graph.model.graph.initializer
        if tensor.name.endswith(("bias", "bias_quantized"))
    }
    stored = {"s8s8": np.int8, "e4m3": E4M3}[scheme]
    for node in graph.of_kind("DequantizeLinear"):
        assert graph.constants.get(node.input[0], np.zeros(1, stored)).dtype == stored
    made = {name for node in weighted(graph) for name in node.output}
    assert not [node.name for node in graph.of_kind("QuantizeLinear") if node.input[0] in made]
    biased = [node for node in graph.of_kind("Gemm") if len(node.input) == 3]
    assert biased
    for node in biased:
        assert graph.constants[node.input[2]].dtype == np.float32


@SCHEMES
def test_layernorm_softmax_and_attention_products_stay_float(
    graphs: dict[str, Graph], scheme: str
) -> None:
    graph = graphs[scheme]
    floats = list(graph.of_kind("LayerNormalization", "Softmax", "Gelu", "Erf"))
    products = [node for node in graph.of_kind("MatMul") if not graph.is_weight(node.input[1])]
    assert len(products) == 4  # two of each layer
    assert {"LayerNormalization", "Softmax"} <= {node.op_type for node in floats}
    for node in floats:
        inputs = [name for name in node.input if name not in graph.constants]
        assert not [name for name in inputs if graph.dequantized(name)], node.name


@FOR_TENSORRT
def test_only_products_and_residual_sums_read_rounded_tensors_for_tensorrt(
    graphs: dict[str, Graph], scheme: str
) -> None:
    """The row of the last layer is taken from the tensor that was not rounded."""
    graph = graphs[scheme]
    consumers = [
        node
        for node in graph.nodes
        if node.op_type not in ("QuantizeLinear", "DequantizeLinear")
        and any(graph.dequantized(name) for name in node.input)
    ]
    products = {node.name for node in in_eight_bits(graph)}
    sums = [node for node in consumers if node.name not in products]
    assert {node.name for node in consumers} > products
    assert [node.op_type for node in sums] == ["Add"] * 2  # of the first layer
    for node in sums:
        (skip,) = (name for name in node.input if graph.dequantized(name))
        assert any(skip in one.input for one in weighted(graph)), node.name


@FOR_TENSORRT
def test_skips_stay_rounded_where_smoothquant_scales_what_the_product_reads(
    tiny: TinyModel, tmp_path: Path, scheme: str
) -> None:
    smoothed = quantized(tiny, tmp_path / "a.onnx", scheme=scheme, repair={"smoothquant": 0.5})
    added = [name for node in smoothed.of_kind("Add") for name in node.input]
    assert len([name for name in added if smoothed.dequantized(name)]) == 2
    for node in smoothed.of_kind("Mul"):
        assert not [name for name in node.input if smoothed.dequantized(name)], node.name


@pytest.mark.parametrize(("scheme", "tolerance"), [("u8s8", 0.05), ("s8s8", 0.05), ("e4m3", 0.15)])
def test_answers_are_those_of_the_float_model(
    tiny: TinyModel, batches: list[Arrays], scheme: str, tolerance: float
) -> None:
    """On ONNX Runtime's CPU provider; the tolerance is relative to the largest logit."""
    floats = run_onnx(load_onnx(tiny.simplified), batches, threads=1)
    found = run_onnx(load_onnx(getattr(tiny, scheme)), batches, threads=1)
    for ours, theirs in zip(found, floats, strict=True):
        assert np.abs(ours - theirs).max() <= tolerance * np.abs(theirs).max()
        np.testing.assert_array_equal(ours.argmax(1), theirs.argmax(1))
        assert np.abs(ours - theirs).max() > 1e-5 * np.abs(theirs).max()


@FOR_TENSORRT
def test_the_ranges_of_the_cache_decide_the_scales(
    tiny: TinyModel, tmp_path: Path, scheme: str
) -> None:
    cache = read_cache(tiny.minmax, model=tiny.simplified)
    del cache["schema"]
    doubled = {name: [2 * low, 2 * high] for name, (low, high) in cache["ranges"].items()}
    write_cache(tmp_path / "wide.json", **{**cache, "ranges": doubled})
    quantize_onnx(tiny.simplified, tmp_path / "wide.json", tmp_path / "wide.onnx", scheme=scheme)
    largest = {"s8s8": 127, "e4m3": 448}[scheme]
    usual, wide = Graph(getattr(tiny, scheme)), Graph(tmp_path / "wide.onnx")
    scales = {
        node.input[1]
        for node in usual.of_kind("QuantizeLinear")
        if not usual.is_weight(node.input[0])
    }
    for name in scales:
        np.testing.assert_allclose(wide.constants[name], 2 * usual.constants[name], rtol=1e-6)
        low, high = cache["ranges"][name.removesuffix("_scale")]
        absmax = max(-low, high)
        assert usual.constants[name] == pytest.approx(absmax / largest, rel=2**-11)


def with_ranges(tiny: TinyModel, target: Path, **ranges: list[float]) -> Path:
    """The cache with other ranges of these tensors, without those that are empty."""
    cache = read_cache(tiny.minmax, model=tiny.simplified)
    del cache["schema"]
    known = {**cache["ranges"], **ranges}
    write_cache(target, **{**cache, "ranges": {name: one for name, one in known.items() if one}})
    return target


def test_a_tensor_that_is_always_zero_gets_a_scale_that_float16_holds(
    tiny: TinyModel, tmp_path: Path
) -> None:
    cache = with_ranges(tiny, tmp_path / "a.json", gelu=[0, 0])
    quantize_onnx(tiny.simplified, cache, tmp_path / "a.onnx", scheme="s8s8")
    assert Graph(tmp_path / "a.onnx").constants["gelu_scale"] == 2**-14


@pytest.mark.parametrize(
    ("scheme", "gelu", "said"),
    [
        ("s8s8", [0, 1e8], r"gelu: values up to 1e\+08 are beyond float16; leave"),
        ("u8s8", [], r"a\.json: has no range for gelu .*; calibrate"),
        ("s8s8", [], r"a\.json: has no range for gelu .*; calibrate"),
    ],
)
def test_a_range_that_is_missing_or_beyond_float16_is_refused(
    tiny: TinyModel, tmp_path: Path, scheme: str, gelu: list[float], said: str
) -> None:
    cache = with_ranges(tiny, tmp_path / "a.json", gelu=gelu)
    with pytest.raises(TightropeError, match=said):
        quantize_onnx(tiny.simplified, cache, tmp_path / "a.onnx", scheme=scheme)


def test_asymmetric_activations_are_refused_for_tensorrt(tiny: TinyModel, tmp_path: Path) -> None:
    with pytest.raises(TightropeError, match=r"TensorRT has zero-point 0 only: take .* out"):
        quantized(tiny, tmp_path / "a.onnx", scheme="s8s8", repair={"activations": "asymmetric"})
    assert not (tmp_path / "a.onnx").exists()


@FOR_TENSORRT
@pytest.mark.parametrize(
    "repair", [{"bias_correction": True}, {"smoothquant": 0.5}, {"outputs": True}], ids=str
)
def test_repairs_go_with_the_schemes_of_tensorrt(
    tiny: TinyModel, batches: list[Arrays], tmp_path: Path, scheme: str, repair: dict
) -> None:
    quantized(tiny, tmp_path / "a.onnx", scheme=scheme, repair=repair)
    onnx.checker.check_model(str(tmp_path / "a.onnx"), full_check=True)
    plain, found, expected = (
        np.concatenate(run_onnx(load_onnx(path), batches, threads=1))
        for path in (getattr(tiny, scheme), tmp_path / "a.onnx", tiny.simplified)
    )
    assert (found.argmax(1) == expected.argmax(1)).mean() > 0.98
    assert (found != plain).any()


def test_outputs_need_a_range_only_where_they_are_quantized(
    tiny: TinyModel, tmp_path: Path
) -> None:
    cache = read_cache(tiny.minmax, model=tiny.simplified)
    del cache["schema"]
    cache["ranges"] = {name: cache["ranges"][name] for name in inputs_of_weighted(tiny)}
    write_cache(tmp_path / "a.json", **cache)
    quantize_onnx(tiny.simplified, tmp_path / "a.json", tmp_path / "a.onnx", scheme="u8s8")
    assert (tmp_path / "a.onnx").read_bytes() == tiny.u8s8.read_bytes()
    paths = (tiny.simplified, tmp_path / "a.json", tmp_path / "b.onnx")
    with pytest.raises(TightropeError, match=r"a\.json: has no range for"):
        quantize_onnx(*paths, scheme="u8s8", repair={"outputs": True})


def inputs_of_weighted(model: TinyModel) -> set[str]:
    return {node.input[0] for node in weighted_nodes(load_onnx(model.simplified))}


def test_a_cache_of_another_model_is_refused(tiny: TinyModel, tmp_path: Path) -> None:
    model = load_onnx(tiny.simplified)
    model.graph.name = "other"
    save_onnx(model, tmp_path / "other.onnx")
    with pytest.raises(ArtifactError, match="the cache of another model"):
        quantize_onnx(tmp_path / "other.onnx", tiny.minmax, tmp_path / "a.onnx", scheme="u8s8")
    assert not (tmp_path / "a.onnx").exists()


def test_a_model_without_weights_is_refused(tiny: TinyModel, tmp_path: Path) -> None:
    value = helper.make_tensor_value_info("x", TensorProto.FLOAT, [2, 2])
    product = helper.make_tensor_value_info("y", TensorProto.FLOAT, [2, 2])
    node = helper.make_node("MatMul", ["x", "x"], ["y"], "square")
    graph = helper.make_graph([node], "square", [value], [product])
    save_onnx(
        helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10),
        tmp_path / "square.onnx",
    )
    with pytest.raises(TightropeError, match=r"square\.onnx: no Conv, Gemm, MatMul with weights"):
        quantize_onnx(tmp_path / "square.onnx", tiny.minmax, tmp_path / "a.onnx", scheme="u8s8")


def quantized(model: TinyModel, target: Path, **settings) -> Graph:
    scheme = settings.pop("scheme", "u8s8")
    quantize_onnx(model.simplified, model.minmax, target, scheme=scheme, **settings)
    return Graph(target)


def names_of(graph: Graph) -> list[str]:
    return [node.name for node in weighted(graph)]


def test_outputs_stay_in_float_unless_a_repair_says_otherwise(
    tiny: TinyModel, graphs: dict[str, Graph], tmp_path: Path
) -> None:
    def readers_of_outputs(graph: Graph) -> set[str]:
        outputs = {node.output[0] for node in weighted(graph)}
        return {node.op_type for node in graph.nodes if outputs & set(node.input)}

    assert "QuantizeLinear" not in readers_of_outputs(graphs["u8s8"])
    usual = quantized(tiny, tmp_path / "a.onnx", repair={"outputs": True})
    assert readers_of_outputs(usual) == {"QuantizeLinear"}


def test_symmetric_activations_have_the_middle_as_zero_point(
    tiny: TinyModel, graphs: dict[str, Graph], tmp_path: Path
) -> None:
    def zero_points(graph: Graph) -> set[int]:
        activations = (
            n for n in graph.of_kind("QuantizeLinear") if not graph.is_weight(n.input[0])
        )
        return {int(graph.constants[node.input[2]]) for node in activations}

    assert len(zero_points(graphs["u8s8"])) > 1
    symmetric = quantized(tiny, tmp_path / "a.onnx", repair={"activations": "symmetric"})
    assert zero_points(symmetric) <= {127, 128}


def test_without_vnni_weights_stay_within_seven_bits(tiny: TinyModel, tmp_path: Path) -> None:
    graph = quantized(tiny, tmp_path / "a.onnx", scheme="u8s7")
    for node in weighted(graph):
        weight = graph.constants[graph.producers[node.input[1]].input[0]]
        assert np.abs(weight.astype(int)).max() == 64


def test_operators_are_left_in_float_by_name_and_by_pattern(
    tiny: TinyModel, graphs: dict[str, Graph], tmp_path: Path
) -> None:
    every = names_of(graphs["u8s8"])
    left = quantized(
        tiny,
        tmp_path / "a.onnx",
        repair={"float": ["*layer.1.*", "bert.encoder.layer.0.output.dense"]},
    )
    floats = {name for name in every if "layer.1." in name or "layer.0.output" in name}
    assert len(floats) == 7
    pairs = {n.name for n in left.of_kind(*WEIGHTED) if left.dequantized(n.input[1])}
    assert pairs == set(every) - floats


def test_an_unknown_operator_is_refused_with_those_that_there_are(
    tiny: TinyModel, tmp_path: Path
) -> None:
    words = r"is named \*\.outptu: correct .*; there are .*bert\.pooler\.dense"
    with pytest.raises(ConfigError, match=words):
        quantized(tiny, tmp_path / "a.onnx", repair={"float": ["*.outptu"]})
    with pytest.raises(TightropeError, match="to quantize: every one is left in float"):
        quantized(tiny, tmp_path / "a.onnx", repair={"float": ["*"]})
    assert not (tmp_path / "a.onnx").exists()


def test_what_a_search_leaves_wholly_in_float_is_the_model_in_float(
    tiny: TinyModel, batches: list[Arrays], tmp_path: Path
) -> None:
    quantized(tiny, tmp_path / "a.onnx", repair={"float": ["*"]}, may_stay_in_float=True)
    expected = run_onnx(load_onnx(tiny.simplified), batches, threads=1)
    found = run_onnx(load_onnx(tmp_path / "a.onnx"), batches, threads=1)
    for ours, theirs in zip(found, expected, strict=True):
        np.testing.assert_array_equal(ours, theirs)
