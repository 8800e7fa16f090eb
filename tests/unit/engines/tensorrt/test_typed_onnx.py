from collections.abc import Callable
from itertools import product
from typing import Any, NamedTuple

import numpy as np
import onnx
import pytest
from onnx import NodeProto, TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator
from onnx.reference.op_run import OpRun
from onnx_text import constants_of, makers_of, onnx_model
from tightrope.engines.tensorrt_onnx import model_to_build, typed
from tightrope.errors import WorkFailed
from tightrope.inputs.arrays import Arrays, stack
from tightrope.int8.schemes import tensorrt_qdq
from tightrope.onnx.edit import weighted_nodes
from tightrope.onnx.file import load_onnx, max_sequence, set_max_sequence
from tightrope.onnx.session import run_onnx
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
ADDED = (*PAIR, "Add")


class Typed(NamedTuple):
    """A model in float, what it is quantized to if so, its typed copy, and batches."""

    precision: str
    floats: onnx.ModelProto
    source: onnx.ModelProto
    model: onnx.ModelProto
    batches: list[Arrays]

    @property
    def constants(self) -> dict[str, np.ndarray]:
        return constants_of(self.model)

    @property
    def operators(self) -> dict[str, NodeProto]:
        return {node.name: node for node in self.model.graph.node}


class GatherElements(OpRun):
    """That of ONNX's reference holds at most 64 elements, by a limit of NumPy's choose."""

    op_domain = ""

    def _run(self, data: np.ndarray, indices: np.ndarray, axis: int = 0) -> tuple[np.ndarray]:
        return (np.take_along_axis(data, indices, axis),)


@pytest.fixture(scope="module")
def known(tiny: TinyModel) -> dict[tuple[str, str], Typed]:
    """Each typed file of a text and an image model, made once."""
    rows = evaluation_rows(tiny)
    lengths = [len(row["input_ids"]) for row in rows]
    padded = next(start for start in range(0, 80, 16) if len({*lengths[start:][:16]}) > 1)
    image = make_convolutions()
    names = [node.name for node in weighted_nodes(image)]
    ranges = ranges_of(image, pictures(64, seed=1))
    floats = {"text": load_onnx(tiny.simplified), "image": image}
    batches = {
        "text": [stack(rows[padded : padded + 16])],
        "image": [{"pixel_values": pictures(16, seed=2)}],
    }
    sources = {("text", "int8-fp16"): load_onnx(tiny.s8s8), ("text", "fp8"): load_onnx(tiny.e4m3)}
    for one, (kind, _) in QUANTIZED.items():
        made = tensorrt_qdq(image, ranges, names, kind=kind, outputs=False)
        sources["image", one] = made
    found = {}
    for name, precision in product(floats, FLOATS):
        source = sources.get((name, precision), floats[name])
        made = typed(source, precision)
        found[name, precision] = Typed(precision, floats[name], source, made, batches[name])
    return found


@pytest.fixture
def made(request: pytest.FixtureRequest, known: dict[tuple[str, str], Typed]) -> Typed:
    return known[request.param]


def files(names: tuple[str, ...], precisions: Any) -> pytest.MarkDecorator:
    both = list(product(names, precisions))
    return pytest.mark.parametrize("made", both, indirect=True, ids="-".join)


EVERY = files(("text", "image"), FLOATS)
IN_PAIRS = files(("text", "image"), QUANTIZED)
TEXTS = files(("text",), FLOATS)
# of texts tests/unit/int8/test_quantize.py says what is rounded
OF_IMAGES = files(("image",), QUANTIZED)


def rounded_inputs(model: onnx.ModelProto, node: NodeProto) -> list[str]:
    makers = makers_of(model)
    return [n for n in node.input if n in makers and makers[n].op_type == "DequantizeLinear"]


def in_its_types(model: onnx.ModelProto, batches: list[Arrays]) -> list[np.ndarray]:
    """Logits by ONNX's reference, which computes in float16 and bfloat16 themselves."""
    reference = ReferenceEvaluator(model, new_ops=[GatherElements])
    return [reference.run(None, batch)[0] for batch in batches]


@EVERY
def test_the_file_is_valid_and_every_tensor_within_has_the_type_asked_for(made: Typed) -> None:
    graph, precision = made.model.graph, made.precision
    before = made.source.SerializeToString(deterministic=True)
    again = typed(made.source, precision)
    assert made.source.SerializeToString(deterministic=True) == before
    both = [one.SerializeToString(deterministic=True) for one in (again, made.model)]
    assert both[0] == both[1]
    onnx.checker.check_model(made.model, full_check=True)
    defined = {"", *made.constants, *(one.name for one in graph.input)}
    for node in graph.node:
        assert set(node.input) <= defined, node.name
        defined |= set(node.output)
    inferred = onnx.shape_inference.infer_shapes(made.model, check_type=True, strict_mode=True)
    types = {one.name: one.type.tensor_type.elem_type for one in inferred.graph.value_info}
    inner = {name for node in graph.node for name in node.output} - {"logits"}
    assert inner <= types.keys()
    allowed = {FLOATS[precision], TensorProto.INT64, TensorProto.BOOL}
    allowed |= {QUANTIZED[precision][0]} if precision in QUANTIZED else set()
    assert {types[name] for name in inner} <= allowed
    assert FLOATS[precision] in types.values()
    assert {tensor.data_type for tensor in graph.initializer} <= allowed
    # both ends as they were
    assert list(graph.input) == list(made.floats.graph.input)
    assert [one.name for one in graph.output] == ["logits"]
    assert graph.output[0].type.tensor_type.elem_type == TensorProto.FLOAT
    # Conv has bfloat16 from opset 22 on
    (opset,) = [one.version for one in made.model.opset_import if not one.domain]
    assert opset == (22 if "pixel_values" in made.batches[0] and precision == "bf16" else 21)


@EVERY
def test_answers_in_these_types_are_near_those_of_float32(made: Typed) -> None:
    """On ONNX's reference implementation, the only one here that has bfloat16 on a CPU."""
    (expected,) = run_onnx(made.floats, made.batches, threads=1)
    found = {"reference": in_its_types(made.model, made.batches)[0]}
    if made.precision != "bf16":
        # it computes float16 on a CPU by casts to float32 and back
        found["onnxruntime"] = run_onnx(made.model, made.batches, threads=1)[0]
    for name, logits in found.items():
        assert logits.dtype == np.float32
        difference = np.abs(logits - expected).max() / np.abs(expected).max()
        assert 1e-6 < difference < TOLERANCES[made.precision], name
        assert (logits.argmax(1) == expected.argmax(1)).all(), name


@TEXTS
def test_what_is_masked_does_not_count_nor_gives_nan(made: Typed) -> None:
    ids = np.arange(5, 17).reshape(2, 6)
    mask = np.array([[1] * 4 + [0] * 2, [0] * 6])
    masked, shown = np.where(mask, ids, 7), np.where(mask, 7, ids)
    found, again, moved = in_its_types(
        made.model, [{"input_ids": one, "attention_mask": mask} for one in (ids, masked, shown)]
    )
    assert np.isfinite(found).all()
    np.testing.assert_array_equal(found[0], again[0])
    assert (moved[0] != found[0]).any()


@IN_PAIRS
def test_pairs_have_zero_points_0_and_scales_of_float16(made: Typed) -> None:
    constants, before = made.constants, constants_of(made.source)
    pairs = [node for node in made.model.graph.node if node.op_type in PAIR]
    assert len(pairs) > 14
    kinds = {tensor.name: tensor.data_type for tensor in made.model.graph.initializer}
    for node in pairs:
        scale, zero = (constants[one] for one in node.input[1:])
        assert kinds[node.input[2]] == QUANTIZED[made.precision][0]
        assert not zero.astype(np.float32).any()
        assert scale.dtype == np.float16
        assert (scale >= np.finfo(np.float16).smallest_normal).all()
        np.testing.assert_array_equal(scale.astype(np.float32), before[node.input[1]])
        assert scale.ndim == 0 or node.input[0] in constants


@OF_IMAGES
def test_weights_have_the_scales_of_their_channels_and_are_the_nearest_numbers(made: Typed) -> None:
    """The largest absolute value over that of the type, rounded to float16; in fp8 of all.

    In fp8 by trying each of its 253 numbers: it is rounded from the float, not from int8.
    """
    kind, most = QUANTIZED[made.precision]
    every = np.arange(256, dtype=np.uint8).view(helper.tensor_dtype_to_np_dtype(kind))
    numbers = np.unique(every.astype(np.float32)[np.isfinite(every.astype(np.float32))])
    floats, constants = constants_of(made.floats), made.constants
    makers = makers_of(made.model)
    weighted = weighted_nodes(made.floats)
    assert len(weighted) == 8
    for node in weighted:
        own = made.operators[node.name]
        assert rounded_inputs(made.model, own) == list(own.input[:2])
        assert all(constants[bias].dtype == np.float16 for bias in own.input[2:])
        dequantize, weight = makers[own.input[1]], floats[node.input[1]]
        axes = [one.i for one in dequantize.attribute]
        by_row = node.op_type in ("Conv", "Gemm")
        assert axes == ([] if made.precision == "fp8" else [0 if by_row else 1])
        others = tuple(one for one in range(weight.ndim) if one not in axes)
        largest = np.abs(weight).max(axis=others, keepdims=True) / most
        stored, scale, _ = (constants[one].astype(np.float32) for one in dequantize.input)
        scale = scale.reshape(largest.shape)
        np.testing.assert_allclose(scale, np.maximum(largest, 2**-14), rtol=2**-11)
        nearest = np.abs((weight / scale)[..., None] - numbers).min(axis=-1)
        missed = np.abs(weight / scale - stored)
        np.testing.assert_allclose(missed, nearest, rtol=1e-4, atol=1e-5)


@OF_IMAGES
def test_only_products_and_skips_of_convolutions_read_rounded_tensors(made: Typed) -> None:
    """Of the block that keeps the size its input, of the one that halves it the shortcut."""
    operators, makers = made.operators, makers_of(made.model)
    for name, source in {"block": "stem", "halved": "shortcut"}.items():
        (skip,) = rounded_inputs(made.model, operators[name])
        assert makers[makers[skip].input[0]].input[0] == source
    assert rounded_inputs(made.model, operators["depthwise"])[0] == operators["block"].input[1]
    # neither normalization nor an activation
    weighted, nodes = {node.name for node in weighted_nodes(made.floats)}, made.model.graph.node
    others = [one for one in nodes if one.name not in weighted and one.op_type not in ADDED]
    kinds = {node.op_type for node in others}
    assert kinds > {"LayerNormalization", "Gelu", "Relu", "GlobalAveragePool"}
    read = {name for node in nodes for name in node.input}
    assert not [node.name for node in others if rounded_inputs(made.model, node)]
    assert not [node for node in nodes if node.op_type in PAIR and not read & set(node.output)]


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
    weight = np.array([[1, 2, 4], [8, 16, 32], [64, 128, 256]], np.float32)
    model = onnx_model(
        """net (float[n, 3] x) => (float[n, 3] y) {
            [one] forth = MatMul (x, w)
            [two] y = Gemm <transB = 1> (forth, w)
        }""",
        w=weight,
    )
    ranges = {"x": [-2.0, 2.0], "forth": [-500.0, 500.0]}
    kind = TensorProto.INT8
    found = tensorrt_qdq(model, ranges, ["one", "two"], kind=kind, outputs=False)
    batch = {"x": np.eye(3, dtype=np.float32)}
    expected = run_onnx(model, [batch], threads=1)[0]
    np.testing.assert_allclose(run_onnx(found, [batch], threads=1)[0], expected, rtol=0.2)
    scales = {name: value for name, value in constants_of(found).items() if value.shape == (3,)}
    largest = sorted(tuple(np.round(s * 127)) for n, s in scales.items() if n.endswith("_scale"))
    assert largest == [(4, 32, 256), (64, 128, 256)]


def test_no_constant_becomes_zero_or_infinite() -> None:
    """Of what is beyond the range, as in a mask, a sum of two has to be finite as well."""
    values = np.array([1e-12, -1e-12, 1e6, -np.inf, np.nan, 0.1, 0], np.float32)
    model = onnx_model("net (float[7] x) => (float[7] y) { y = Add (x, c) }", c=values)
    expected = [2**-24, -(2**-24), 16376, -np.inf, np.nan, 0.1, 0]
    found = constants_of(typed(model, "fp16"))["c"]
    np.testing.assert_array_equal(found, np.array(expected, np.float16))
    lowest = np.array([np.finfo(np.float32).min], np.float32)
    model = onnx_model("net (float[1] x) => (float[1] y) { y = Add (x, c) }", c=lowest)
    (found,) = constants_of(typed(model, "bf16"))["c"].astype(np.float32)
    assert found == pytest.approx(lowest[0] / 4, rel=0.01)


def test_float32_stays_as_it_is(known: dict[tuple[str, str], Typed]) -> None:
    source = known["text", "fp16"].source
    for precision in ("fp32", "tf32"):
        assert typed(source, precision).SerializeToString() == source.SerializeToString()


@pytest.mark.parametrize("precision", ["fp16", "bf16"])
def test_whatever_says_a_type_says_the_new_one(precision: str) -> None:
    """Constants in attributes and branches, a shape's default of zeros, casts."""
    model = onnx_model(
        """net (int64[2] x, bool yes) => (float[2] y)
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
    batch = {"x": np.array([1, 2]), "yes": np.array(True)}
    (result,) = ReferenceEvaluator(typed(model, precision)).run(None, batch)
    np.testing.assert_array_equal(result, np.array([2.75, 4.25], np.float32))


def test_a_constant_that_must_be_float32_stays() -> None:
    """The scales of Resize have no other type."""
    scales = np.array([1, 1, 2, 2], np.float32)
    text = "net (float[1, 1, 2, 2] x) => (float[1, 1, 4, 4] y) { y = Resize (x, , scales) }"
    found = typed(onnx_model(text, scales=scales), "fp16")
    assert constants_of(found)["scales"].dtype == np.float32
    pixels = np.arange(4, dtype=np.float32).reshape(1, 1, 2, 2)
    (larger,) = run_onnx(found, [{"x": pixels}], threads=1)
    np.testing.assert_array_equal(larger[0, 0, ::2, ::2], pixels[0, 0])


def old_model(operators: str) -> onnx.ModelProto:
    """A product with int8 weights in an opset whose Q/DQ has no float16."""
    draw = np.random.default_rng(0)
    return onnx_model(
        """net (float[batch, 4] x) => (float[batch, m] y)
        {
            q = QuantizeLinear (x, x_scale, zero)
            d = DequantizeLinear (q, x_scale, zero)
            w = DequantizeLinear <axis = 1> (weight, w_scale, zeros)
            product = MatMul (d, w)
            OPERATORS
        }""".replace("OPERATORS", operators),
        '<ir_version: 8, opset_import: ["" : 15]>',
        **{"x_scale": 0.03125, "zero": np.int8(0), "w_scale": [0.0078125] * 3},
        **{"weight": draw.integers(-127, 128, (4, 3), np.int8), "zeros": np.zeros(3, np.int8)},
    )


def test_a_file_of_an_old_opset_is_converted_and_still_says_how_many_tokens_it_takes() -> None:
    """The axes of ReduceMean were an attribute before opset 18."""
    source = old_model("y = ReduceMean <axes = [-1]> (product)")
    set_max_sequence(source, 64)
    found = typed(source, "int8-fp16")
    assert (found.opset_import[0].version, max_sequence(found)) == (19, 64)
    onnx.checker.check_model(found, full_check=True)
    draw = np.random.default_rng(1)
    # numbers that float16 holds, so that each is rounded to the same int8
    batch = {"x": draw.integers(-64, 65, (5, 4)).astype(np.float32) / 32}
    expected, ours = (run_onnx(model, [batch], threads=1)[0] for model in (source, found))
    np.testing.assert_allclose(ours, expected, atol=2e-3)


STEPS = """net (float x) => (float[n] y)
{
    one = Constant <value_float = 1.0> ()
    steps = Range (one, x, one)
    y = Neg (steps)
}"""


def with_constant(tiny: TinyModel, name: str, value: Any) -> onnx.ModelProto:
    model = load_onnx(tiny.s8s8)
    (tensor,) = (one for one in model.graph.initializer if one.name == name)
    tensor.CopyFrom(numpy_helper.from_array(value, name))
    return model


def tiny_file(name: str) -> Callable[[TinyModel], onnx.ModelProto]:
    return lambda tiny: load_onnx(getattr(tiny, name))


OLD = r"opset 15, 19 is needed, .* cannot be .*export it again"


@pytest.mark.parametrize(
    ("source", "precision", "reason"),
    [
        (lambda _: onnx_model(STEPS), "fp16", r"^fp16: .*op_type:Range.* tensor\(float16\)"),
        # ONNX has LayerNormalization from opset 17 on, a file of opset 15 should not
        (lambda _: old_model("y = LayerNormalization (product, w_scale)"), "int8-fp16", OLD),
        # of another scheme
        (tiny_file("u8s8"), "int8-fp16", "no ONNX file for int8-fp16: .*not 0 of int8"),
        (tiny_file("s8s8"), "fp8", "zero-point that is not 0 of float8_e4m3fn"),
        (tiny_file("simplified"), "int8-fp16", "no operator is quantized"),
        (
            lambda tiny: with_constant(tiny, "gelu_scale", np.array(1e-6, np.float32)),
            "int8-fp16",
            "gelu_.*Linear has a scale that float16 does not",
        ),
    ],
)
def test_a_file_that_cannot_have_these_types_is_refused(tiny, source, precision, reason) -> None:
    with pytest.raises(WorkFailed, match=reason):
        typed(source(tiny), precision)


def test_attention_is_one_operator_in_16_bits_alone(tiny: TinyModel) -> None:
    for precision, count in (("fp32", 0), ("fp16", 2), ("bf16", 2)):
        made = model_to_build(load_onnx(tiny.simplified), precision, attention_operator=True)
        assert sum(node.op_type == "Attention" for node in made.graph.node) == count
