from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import onnx
import pytest
from onnx import NodeProto, TensorProto, helper, numpy_helper, parser
from onnx.reference import ReferenceEvaluator
from onnx.reference.op_run import OpRun
from tightrope.errors import WorkFailed
from tightrope.inputs.arrays import Arrays, stack
from tightrope.int8.qdq_tensorrt import tensorrt_qdq
from tightrope.onnx.file import load_onnx, max_sequence, set_max_sequence
from tightrope.onnx.session import run_onnx
from tightrope.onnx.weights import weighted_nodes
from tightrope.runtimes.tensorrt.typed_onnx import typed
from tiny_convolutions import make_convolutions, pictures, ranges_of
from tiny_model import TinyModel, evaluation_rows

FLOATS = {
    "fp16": TensorProto.FLOAT16,
    "bf16": TensorProto.BFLOAT16,
    "int8-fp16": TensorProto.FLOAT16,
    "fp8": TensorProto.FLOAT16,
}
# type and largest value of what is quantized
QUANTIZED = {"int8-fp16": (TensorProto.INT8, 127), "fp8": (TensorProto.FLOAT8E4M3FN, 448)}
# of the largest logit of a batch
TOLERANCES = {"fp16": 0.005, "bf16": 0.03, "int8-fp16": 0.05, "fp8": 0.15}
PAIR = ("QuantizeLinear", "DequantizeLinear")
MODELS = pytest.mark.parametrize("name", ["text", "image"])
PRECISIONS = pytest.mark.parametrize("precision", list(FLOATS))
IN_PAIRS = pytest.mark.parametrize("precision", list(QUANTIZED))


class Sources(NamedTuple):
    """A model in float and what it is quantized to, and batches."""

    floats: onnx.ModelProto
    quantized: dict[str, onnx.ModelProto]
    batches: list[Arrays]

    def of(self, precision: str) -> onnx.ModelProto:
        return self.quantized.get(precision, self.floats)


class GatherElements(OpRun):
    """That of ONNX's reference holds at most 64 elements, by a limit of NumPy's choose."""

    op_domain = ""

    def _run(self, data: np.ndarray, indices: np.ndarray, axis: int = 0) -> tuple[np.ndarray]:
        return (np.take_along_axis(data, indices, axis),)


@pytest.fixture(scope="module")
def sources(tiny: TinyModel) -> dict[str, Sources]:
    rows = evaluation_rows(tiny)
    image = make_convolutions()
    names = [node.name for node in weighted_nodes(image)]
    ranges = ranges_of(image, pictures(64, seed=1))
    return {
        "text": Sources(
            load_onnx(tiny.simplified),
            {"int8-fp16": load_onnx(tiny.s8s8), "fp8": load_onnx(tiny.e4m3)},
            [stack(rows[start : start + 16]) for start in range(0, 80, 16)],
        ),
        "image": Sources(
            image,
            {
                precision: tensorrt_qdq(image, ranges, names, kind=kind, outputs=False)
                for precision, (kind, _) in QUANTIZED.items()
            },
            [{"pixel_values": pictures(16, seed=2)}],
        ),
    }


@pytest.fixture(scope="module")
def made(sources: dict[str, Sources]) -> Callable[[str, str], onnx.ModelProto]:
    """Each typed file, made once."""
    known: dict[tuple[str, str], onnx.ModelProto] = {}

    def make(name: str, precision: str) -> onnx.ModelProto:
        if (name, precision) not in known:
            known[name, precision] = typed(sources[name].of(precision), precision)
        return known[name, precision]

    return make


def constants_of(model: onnx.ModelProto) -> dict[str, np.ndarray]:
    return {one.name: numpy_helper.to_array(one) for one in model.graph.initializer}


def makers_of(model: onnx.ModelProto) -> dict[str, NodeProto]:
    return {name: node for node in model.graph.node for name in node.output}


def rounded_inputs(model: onnx.ModelProto, node: NodeProto) -> list[str]:
    makers = makers_of(model)
    return [n for n in node.input if n in makers and makers[n].op_type == "DequantizeLinear"]


def in_its_types(model: onnx.ModelProto, batches: list[Arrays]) -> list[np.ndarray]:
    """Logits by ONNX's reference, which computes in float16 and bfloat16 themselves."""
    reference = ReferenceEvaluator(model, new_ops=[GatherElements])
    return [reference.run(None, batch)[0] for batch in batches]


def difference(found: list[np.ndarray], expected: list[np.ndarray]) -> float:
    pairs = zip(found, expected, strict=True)
    return max(float(np.abs(a - b).max() / np.abs(b).max()) for a, b in pairs)


@MODELS
@PRECISIONS
def test_the_file_is_valid_and_sorted(made: Any, name: str, precision: str) -> None:
    model = made(name, precision)
    onnx.checker.check_model(model, full_check=True)
    known = {"", *constants_of(model), *(one.name for one in model.graph.input)}
    for node in model.graph.node:
        assert set(node.input) <= known, node.name
        known |= set(node.output)
    assert {one.name for one in model.graph.output} <= known
    assert not model.graph.value_info


@MODELS
@PRECISIONS
def test_the_opset_is_the_sources_unless_it_lacks_the_type(
    made: Any, name: str, precision: str
) -> None:
    """Conv has bfloat16 from opset 22 on."""
    (found,) = [one.version for one in made(name, precision).opset_import if not one.domain]
    assert found == (22 if (name, precision) == ("image", "bf16") else 21)


@MODELS
@PRECISIONS
def test_every_tensor_has_the_type_asked_for(made: Any, name: str, precision: str) -> None:
    model = made(name, precision)
    inferred = onnx.shape_inference.infer_shapes(model, check_type=True, strict_mode=True)
    types = {one.name: one.type.tensor_type.elem_type for one in inferred.graph.value_info}
    ends = {one.name for one in model.graph.output}
    assert {name for node in model.graph.node for name in node.output} <= types.keys() | ends
    allowed = {FLOATS[precision], TensorProto.INT64, TensorProto.BOOL}
    allowed |= {QUANTIZED[precision][0]} if precision in QUANTIZED else set()
    assert {kind for name, kind in types.items() if name not in ends} <= allowed
    assert FLOATS[precision] in types.values()
    assert {tensor.data_type for tensor in model.graph.initializer} <= allowed


@MODELS
@PRECISIONS
def test_inputs_and_outputs_keep_names_and_types(
    made: Any, sources: dict[str, Sources], name: str, precision: str
) -> None:
    ours, theirs = made(name, precision).graph, sources[name].floats.graph
    assert list(ours.input) == list(theirs.input)
    assert [one.name for one in ours.output] == ["logits"]
    assert ours.output[0].type.tensor_type.elem_type == TensorProto.FLOAT


@MODELS
@PRECISIONS
def test_answers_in_these_types_are_near_those_of_float32(
    made: Any, sources: dict[str, Sources], name: str, precision: str
) -> None:
    """On ONNX's reference implementation, the only one here that has bfloat16 on a CPU."""
    batches = sources[name].batches
    expected = run_onnx(sources[name].floats, batches, threads=1)
    found = in_its_types(made(name, precision), batches)
    assert {array.dtype for array in found} == {np.dtype("float32")}
    assert 1e-6 < difference(found, expected) < TOLERANCES[precision]


@MODELS
@pytest.mark.parametrize("precision", ["fp16", "int8-fp16", "fp8"])
def test_onnxruntime_gives_these_answers_too(
    made: Any, sources: dict[str, Sources], name: str, precision: str
) -> None:
    """It computes float16 on a CPU by casts to float32 and back."""
    batches = sources[name].batches
    expected = run_onnx(sources[name].floats, batches, threads=1)
    found = run_onnx(made(name, precision), batches, threads=1)
    assert 1e-6 < difference(found, expected) < TOLERANCES[precision]


@PRECISIONS
def test_labels_of_the_text_model_are_those_of_float32(
    made: Any, sources: dict[str, Sources], precision: str
) -> None:
    batches = sources["text"].batches
    expected = np.concatenate(run_onnx(sources["text"].floats, batches, threads=1))
    found = np.concatenate(in_its_types(made("text", precision), batches))
    assert (found.argmax(1) == expected.argmax(1)).mean() > 0.98


@MODELS
@IN_PAIRS
def test_pairs_have_zero_points_0_and_scales_of_float16(
    made: Any, sources: dict[str, Sources], name: str, precision: str
) -> None:
    model, before = made(name, precision), constants_of(sources[name].of(precision))
    constants = constants_of(model)
    pairs = [node for node in model.graph.node if node.op_type in PAIR]
    assert len(pairs) > 14
    kinds = {tensor.name: tensor.data_type for tensor in model.graph.initializer}
    for node in pairs:
        scale, zero = (constants[one] for one in node.input[1:])
        assert kinds[node.input[2]] == QUANTIZED[precision][0]
        assert not zero.astype(np.float32).any()
        assert scale.dtype == np.float16
        assert (scale >= np.finfo(np.float16).smallest_normal).all()
        np.testing.assert_array_equal(scale.astype(np.float32), before[node.input[1]])
        assert scale.ndim == 0 or node.input[0] in constants


def quantized_nodes(source: Sources, model: onnx.ModelProto) -> list[onnx.NodeProto]:
    """The operators with weights of the float model that are quantized in `model`."""
    operators, makers = {node.name: node for node in model.graph.node}, makers_of(model)
    return [
        node for node in weighted_nodes(source.floats) if operators[node.name].input[1] in makers
    ]


@MODELS
@IN_PAIRS
def test_weights_have_the_scales_of_their_channels(
    made: Any, sources: dict[str, Sources], name: str, precision: str
) -> None:
    """The largest absolute value over that of the type, rounded to float16; in fp8 of all."""
    model, floats = made(name, precision), constants_of(sources[name].floats)
    constants, makers = constants_of(model), makers_of(model)
    operators = {node.name: node for node in model.graph.node}
    weighted = quantized_nodes(sources[name], model)
    # of the text model all but those of one row per example
    assert len(weighted) == 8
    for node in weighted:
        dequantize = makers[operators[node.name].input[1]]
        if precision == "fp8":
            assert not dequantize.attribute
            scale = constants[dequantize.input[1]].astype(np.float32)
            largest = max(np.abs(floats[node.input[1]]).max() / 448, 2**-14)
            np.testing.assert_allclose(scale, largest, rtol=2**-11)
            continue
        (axis,) = [one.i for one in dequantize.attribute]
        transposed = any(one.name == "transB" and one.i for one in node.attribute)
        assert axis == (0 if node.op_type == "Conv" or transposed else 1)
        weight = np.moveaxis(floats[node.input[1]], axis, 0)
        largest = np.abs(weight).reshape(len(weight), -1).max(axis=1)
        scale = constants[dequantize.input[1]].astype(np.float32)
        np.testing.assert_allclose(scale, largest / QUANTIZED[precision][1], rtol=2**-11)


@MODELS
def test_fp8_weights_are_the_nearest_that_e4m3_has(
    made: Any, sources: dict[str, Sources], name: str
) -> None:
    """By trying each of its 253 numbers: it is rounded from the float, not from an int8 weight."""
    model, floats = made(name, "fp8"), constants_of(sources[name].floats)
    constants, makers = constants_of(model), makers_of(model)
    operators = {node.name: node for node in model.graph.node}
    kind = helper.tensor_dtype_to_np_dtype(TensorProto.FLOAT8E4M3FN)
    every = np.arange(256, dtype=np.uint8).view(kind).astype(np.float32)
    every = np.unique(every[np.isfinite(every)])
    assert (len(every), every.max()) == (253, 448)
    for node in quantized_nodes(sources[name], model):
        dequantize = makers[operators[node.name].input[1]]
        quantized, scale, _ = (constants[one] for one in dequantize.input)
        scaled = floats[node.input[1]] / scale.astype(np.float32)
        nearest = np.abs(scaled[..., None] - every).min(axis=-1)
        np.testing.assert_allclose(
            np.abs(scaled - quantized.astype(np.float32)), nearest, rtol=1e-4, atol=1e-6
        )


@MODELS
@IN_PAIRS
def test_products_with_weights_read_rounded_tensors(
    made: Any, sources: dict[str, Sources], name: str, precision: str
) -> None:
    model = made(name, precision)
    operators = {node.name: node for node in model.graph.node}
    for node in quantized_nodes(sources[name], model):
        inputs = operators[node.name].input
        assert rounded_inputs(model, operators[node.name]) == list(inputs[:2])
        for bias in inputs[2:]:
            assert constants_of(model)[bias].dtype == np.float16


@IN_PAIRS
def test_the_skip_of_a_sum_is_the_tensor_that_the_product_reads(made: Any, precision: str) -> None:
    model = made("text", precision)
    sums = [node for node in model.graph.node if node.op_type == "Add"]
    skips = [name for node in sums for name in rounded_inputs(model, node)]
    assert len(skips) == len(set(skips)) == 2  # of the first layer
    for skip in skips:
        readers = {node.op_type for node in model.graph.node if skip in node.input}
        assert readers == {"Add", "MatMul"}


@IN_PAIRS
def test_skips_of_convolutions_are_rounded(made: Any, precision: str) -> None:
    """Of the block that keeps the size its input, of the one that halves it the shortcut."""
    model = made("image", precision)
    operators = {node.name: node for node in model.graph.node}
    makers = makers_of(model)
    for name, source in {"block": "stem", "halved": "shortcut"}.items():
        (skip,) = rounded_inputs(model, operators[name])
        assert makers[makers[skip].input[0]].input[0] == source
    assert rounded_inputs(model, operators["depthwise"])[0] == operators["block"].input[1]


@MODELS
@IN_PAIRS
def test_nothing_else_reads_a_rounded_tensor(
    made: Any, sources: dict[str, Sources], name: str, precision: str
) -> None:
    """Neither normalization nor softmax, nor attention, nor the row that the last layer takes."""
    model = made(name, precision)
    weighted = {node.name for node in weighted_nodes(sources[name].floats)}
    others = [
        node
        for node in model.graph.node
        if node.name not in weighted and node.op_type not in (*PAIR, "Add")
    ]
    kinds = {node.op_type for node in others}
    assert (
        kinds
        > {
            "text": {"LayerNormalization", "Softmax", "MatMul", "Gelu", "Slice"},
            "image": {"LayerNormalization", "Gelu", "Relu", "GlobalAveragePool"},
        }[name]
    )
    for node in others:
        assert rounded_inputs(model, node) == [], node.name
    read = {name for node in model.graph.node for name in node.input}
    for node in model.graph.node:
        assert node.op_type not in PAIR or read & set(node.output), node.name


def test_a_skip_without_a_range_stays_in_float() -> None:
    """A cache that was imported may not have what a convolution gives."""
    model, kind = make_convolutions(), TensorProto.INT8
    ranges = ranges_of(model, pictures(8, seed=1))
    del ranges["shortcut"]
    names = [node.name for node in weighted_nodes(model)]
    found = tensorrt_qdq(model, ranges, names, kind=kind, outputs=False)
    operators = {node.name: node for node in found.graph.node}
    assert rounded_inputs(found, operators["halved"]) == []
    assert len(rounded_inputs(found, operators["block"])) == 1


def test_a_weight_that_is_read_both_ways_has_the_channels_of_each() -> None:
    model = parser.parse_model(
        """<ir_version: 10, opset_import: ["" : 21]>
        net (float[n, 3] x) => (float[n, 3] y)
        {
            [one] forth = MatMul (x, w)
            [two] y = Gemm <transB = 1> (forth, w)
        }"""
    )
    weight = np.array([[1, 2, 4], [8, 16, 32], [64, 128, 256]], np.float32)
    model.graph.initializer.append(numpy_helper.from_array(weight, "w"))
    ranges = {"x": [-2.0, 2.0], "forth": [-500.0, 500.0]}
    kind = TensorProto.INT8
    found = tensorrt_qdq(model, ranges, ["one", "two"], kind=kind, outputs=False)
    batch = {"x": np.eye(3, dtype=np.float32)}
    expected = run_onnx(model, [batch], threads=1)[0]
    np.testing.assert_allclose(run_onnx(found, [batch], threads=1)[0], expected, rtol=0.2)
    scales = {name: value for name, value in constants_of(found).items() if value.shape == (3,)}
    largest = sorted(tuple(np.round(s * 127)) for n, s in scales.items() if n.endswith("_scale"))
    assert largest == [(4, 32, 256), (64, 128, 256)]


@PRECISIONS
def test_what_is_masked_does_not_count(
    made: Any, sources: dict[str, Sources], precision: str
) -> None:
    model = made("text", precision)
    batch = next(one for one in sources["text"].batches if not one["attention_mask"].all())
    other = {**batch, "input_ids": np.where(batch["attention_mask"], batch["input_ids"], 7)}
    assert (other["input_ids"] != batch["input_ids"]).any()
    found, again = in_its_types(model, [batch, other])
    np.testing.assert_array_equal(found, again)
    moved = {**batch, "input_ids": np.where(batch["attention_mask"], 7, batch["input_ids"])}
    assert (in_its_types(model, [moved])[0] != found).any()


@PRECISIONS
def test_a_row_that_is_masked_whole_is_still_a_number(made: Any, precision: str) -> None:
    ids = np.arange(5, 17).reshape(2, 6)
    mask = np.array([[1] * 6, [0] * 6])
    (found,) = in_its_types(made("text", precision), [{"input_ids": ids, "attention_mask": mask}])
    assert np.isfinite(found).all()


@pytest.mark.parametrize("precision", ["fp16", "bf16"])
def test_a_mask_survives_the_narrower_range(precision: str) -> None:
    """Two masks and a score of 20 in one sum, as of padding and of what lies ahead."""
    lowest = np.finfo(np.float32).min
    model = parser.parse_model(
        """<ir_version: 10, opset_import: ["" : 21]>
        net (float[rows, 4] scores, bool[rows, 4] padding) => (float[rows, 4] weights)
        {
            masks = Where (padding, lowest, zero)
            once = Add (scores, masks)
            twice = Add (once, masks)
            weights = Softmax (twice)
        }"""
    )
    for name, value in {"lowest": lowest, "zero": 0.0}.items():
        model.graph.initializer.append(numpy_helper.from_array(np.float32(value), name))
    found = typed(model, precision)
    narrowed = constants_of(found)
    assert np.isfinite(narrowed["lowest"].astype(np.float32))
    assert narrowed["zero"].astype(np.float32) == 0
    scores = np.array([[1, 2, -20, 20], [-20, -20, -20, -20]], np.float32)
    padding = np.array([[False, True, True, False], [True] * 4])
    (weights,) = ReferenceEvaluator(found).run(None, {"scores": scores, "padding": padding})
    np.testing.assert_allclose(weights, [[0, 0, 0, 1], [0.25] * 4], atol=0.01)


def test_no_constant_becomes_zero_or_infinite() -> None:
    model = parser.parse_model(
        """<ir_version: 10, opset_import: ["" : 21]>
        net (float[6] x) => (float[6] y) { y = Add (x, c) }"""
    )
    values = np.array([1e-12, -1e-12, 1e6, -np.inf, np.nan, 0.1], np.float32)
    model.graph.initializer.append(numpy_helper.from_array(values, "c"))
    found = constants_of(typed(model, "fp16"))["c"]
    np.testing.assert_array_equal(
        found, np.array([2**-24, -(2**-24), 16376, -np.inf, np.nan, 0.1], np.float16)
    )


@pytest.mark.parametrize("precision", ["fp32", "tf32"])
def test_float32_stays_as_it_is(sources: dict[str, Sources], precision: str) -> None:
    source = sources["text"].floats
    assert typed(source, precision).SerializeToString() == source.SerializeToString()


@PRECISIONS
def test_the_source_is_not_changed(sources: dict[str, Sources], precision: str) -> None:
    source = sources["text"].of(precision)
    before = source.SerializeToString(deterministic=True)
    first, second = (typed(source, precision) for _ in range(2))
    assert source.SerializeToString(deterministic=True) == before
    assert first.SerializeToString(deterministic=True) == second.SerializeToString(
        deterministic=True
    )


def test_whatever_says_a_type_says_the_new_one() -> None:
    """Constants in attributes and branches, a shape's default of zeros, casts."""
    model = parser.parse_model(
        """<ir_version: 10, opset_import: ["" : 21]>
        net (int64[2] x, bool yes) => (float[2] y)
        {
            half = Constant <value_float = 0.5> ()
            more = Constant <value_floats = [1.0, 2.0]> ()
            tensor = Constant <value = float[2] {3.0, 4.0}> ()
            shape = Shape (x)
            zeros = ConstantOfShape (shape)
            floats = Cast <to = 1> (x)
            a = Add (floats, half)
            b = Add (a, more)
            c = Add (b, tensor)
            d = Add (c, zeros)
            y = If (yes) <
                then_branch = one () => (float[2] p) { p = Mul (d, half) },
                else_branch = two () => (float[2] q) { q = Identity (d) }
            >
        }"""
    )
    for precision in ("fp16", "bf16"):
        found = typed(model, precision)
        batch = {"x": np.array([1, 2]), "yes": np.array(True)}
        (result,) = ReferenceEvaluator(found).run(None, batch)
        np.testing.assert_array_equal(result, np.array([2.75, 4.25], np.float32))


def test_a_constant_that_must_be_float32_stays() -> None:
    """The scales of Resize have no other type."""
    model = parser.parse_model(
        """<ir_version: 10, opset_import: ["" : 21]>
        net (float[1, 1, 2, 2] x) => (float[1, 1, 4, 4] y) { y = Resize (x, , scales) }"""
    )
    scales = np.array([1, 1, 2, 2], np.float32)
    model.graph.initializer.append(numpy_helper.from_array(scales, "scales"))
    found = typed(model, "fp16")
    assert constants_of(found)["scales"].dtype == np.float32
    pixels = np.arange(4, dtype=np.float32).reshape(1, 1, 2, 2)
    (larger,) = run_onnx(found, [{"x": pixels}], threads=1)
    np.testing.assert_array_equal(larger[0, 0, ::2, ::2], pixels[0, 0])


def test_an_operator_that_onnx_has_in_float32_only_is_refused() -> None:
    model = parser.parse_model(
        """<ir_version: 10, opset_import: ["" : 21]>
        net (float x) => (float[n] y)
        {
            one = Constant <value_float = 1.0> ()
            steps = Range (one, x, one)
            y = Neg (steps)
        }"""
    )
    with pytest.raises(WorkFailed, match=r"fp16: .*op_type:Range.* tensor\(float16\)"):
        typed(model, "fp16")


def old_model(operators: str) -> onnx.ModelProto:
    """A product with int8 weights in an opset whose Q/DQ has no float16."""
    model = parser.parse_model(
        """<ir_version: 8, opset_import: ["" : 15]>
        net (float[batch, 4] x) => (float[batch, m] y)
        {
            q = QuantizeLinear (x, x_scale, zero)
            d = DequantizeLinear (q, x_scale, zero)
            w = DequantizeLinear <axis = 1> (weight, w_scale, zeros)
            product = MatMul (d, w)
            OPERATORS
        }""".replace("OPERATORS", operators)
    )
    draw = np.random.default_rng(0)
    constants = {
        "x_scale": np.float32(0.03125),
        "zero": np.int8(0),
        "weight": draw.integers(-127, 128, (4, 3), dtype=np.int8),
        "w_scale": np.full(3, 0.0078125, np.float32),
        "zeros": np.zeros(3, np.int8),
    }
    model.graph.initializer.extend(
        numpy_helper.from_array(np.asarray(value), name) for name, value in constants.items()
    )
    return model


def test_a_file_of_an_old_opset_is_converted() -> None:
    """The axes of ReduceMean were an attribute before opset 18."""
    source = old_model("y = ReduceMean <axes = [-1]> (product)")
    found = typed(source, "int8-fp16")
    assert found.opset_import[0].version == 19
    onnx.checker.check_model(found, full_check=True)
    draw = np.random.default_rng(1)
    # numbers that float16 holds, so that each is rounded to the same int8
    batch = {"x": draw.integers(-64, 65, (5, 4)).astype(np.float32) / 32}
    expected, ours = (run_onnx(model, [batch], threads=1)[0] for model in (source, found))
    np.testing.assert_allclose(ours, expected, atol=2e-3)


def test_a_converted_file_still_says_how_many_tokens_the_model_takes() -> None:
    source = old_model("y = Identity (product)")
    set_max_sequence(source, 64)
    found = typed(source, "int8-fp16")
    assert found.opset_import[0].version == 19
    assert max_sequence(found) == 64


def test_e4m3_raises_the_opset_of_an_old_file() -> None:
    """Q/DQ has float8 from opset 19 on."""
    model = parser.parse_model(
        """<ir_version: 7, opset_import: ["" : 13]>
        net (float[n, 2] x) => (float[n, 1] y)
        {
            [product] wide = MatMul (x, w)
            y = ReduceMean <axes = [-1]> (wide)
        }"""
    )
    model.graph.initializer.append(numpy_helper.from_array(np.eye(2, dtype=np.float32), "w"))
    kind = TensorProto.FLOAT8E4M3FN
    found = tensorrt_qdq(model, {"x": [-1, 1]}, ["product"], kind=kind, outputs=False)
    onnx.checker.check_model(found, full_check=True)
    assert found.opset_import[0].version == 19
    batch = {"x": np.array([[1, 0.5]], np.float32)}
    for one in (found, typed(found, "fp8")):
        np.testing.assert_allclose(run_onnx(one, [batch], threads=1)[0], [[0.75]], rtol=0.01)


def test_a_file_without_a_way_to_the_needed_opset_is_refused() -> None:
    """ONNX has LayerNormalization from opset 17 on, a file of opset 15 should not."""
    source = old_model("y = LayerNormalization (product, w_scale)")
    with pytest.raises(WorkFailed, match=r"opset 15, 19 is needed, .* cannot be .*export it again"):
        typed(source, "int8-fp16")


@pytest.mark.parametrize(
    ("file", "precision", "reason"),
    [
        ("u8s8", "int8-fp16", "zero-point that is not 0 of int8"),
        ("s8s8", "fp8", "zero-point that is not 0 of float8_e4m3fn"),
        ("simplified", "int8-fp16", "no operator is quantized"),
    ],
)
def test_a_file_of_another_scheme_is_refused(
    tiny: TinyModel, file: str, precision: str, reason: str
) -> None:
    with pytest.raises(WorkFailed, match=f"no ONNX file for {precision}: .*{reason}"):
        typed(load_onnx(getattr(tiny, file)), precision)


def test_a_scale_that_float16_does_not_hold_is_refused(tiny: TinyModel) -> None:
    model = load_onnx(tiny.s8s8)
    scale = next(one for one in model.graph.initializer if one.name == "gelu_scale")
    scale.CopyFrom(numpy_helper.from_array(np.float32(1e-6), "gelu_scale"))
    with pytest.raises(WorkFailed, match=r"gelu_.*Linear has a scale that float16 does not"):
        typed(model, "int8-fp16")
