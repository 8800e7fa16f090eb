"""Attention quantized for TensorRT, as the repair `attention: true` asks for."""

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper, parser
from tightrope.errors import TightropeError
from tightrope.inputs.arrays import Arrays, stack
from tightrope.inputs.encode import load_encoder, read_split
from tightrope.int8.calibrate import read_cache, write_cache
from tightrope.int8.quantization_noise import quantization_noise
from tightrope.int8.quantize import attention_of, quantize_onnx
from tightrope.int8.schemes import SCHEMES, attention_to_quantize
from tightrope.onnx.attention import Attention, attention_in
from tightrope.onnx.file import load_onnx
from tightrope.onnx.session import run_onnx
from tightrope.runtimes.tensorrt.typed_onnx import typed
from tiny_convolutions import make_convolutions
from tiny_model import LONGEST, TinyModel, evaluation_rows

FOR_TENSORRT = pytest.mark.parametrize("scheme", ["s8s8", "e4m3"])
E4M3 = helper.tensor_dtype_to_np_dtype(TensorProto.FLOAT8E4M3FN)
LARGEST = {"s8s8": 127, "e4m3": 448}
PRECISION = {"s8s8": "int8-fp16", "e4m3": "fp8"}
HEADS = """<ir_version: 10, opset_import: ["" : 21]>
net (int64[batch, sequence] input_ids, int64[batch, sequence] attention_mask)
    => (float[batch, sequence, WIDTH] logits)
{
    x = Gather (table, input_ids)
    turned = Transpose <perm = [0, 2, 1]> (x)
    [first] scores = MatMul (x, turned)
    [softmax] weights = Softmax (scores)
    [second] logits = MatMul (weights, x)
}"""


def quantized(model: TinyModel, target: Path, scheme: str, **repair: Any) -> onnx.ModelProto:
    settings = {"attention": True, **repair}
    quantize_onnx(model.simplified, model.minmax, target, scheme=scheme, repair=settings)
    return load_onnx(target)


@pytest.fixture(scope="module")
def files(tiny: TinyModel, tmp_path_factory: pytest.TempPathFactory) -> dict[str, onnx.ModelProto]:
    folder = tmp_path_factory.mktemp("attention")
    return {one: quantized(tiny, folder / f"{one}.onnx", one) for one in LARGEST}


@pytest.fixture(scope="module")
def batches(tiny: TinyModel) -> list[Arrays]:
    rows = evaluation_rows(tiny)
    return [stack(rows[start : start + 16]) for start in range(0, 80, 16)]


def first_layer(tiny: TinyModel) -> Attention:
    return attention_in(load_onnx(tiny.simplified))[0][0]


def constants_of(model: onnx.ModelProto) -> dict[str, np.ndarray]:
    return {one.name: numpy_helper.to_array(one) for one in model.graph.initializer}


def pairs_of(model: onnx.ModelProto) -> dict[str, list[str]]:
    """What each tensor with a Q/DQ pair is quantized by, by the tensor's name."""
    return {
        node.input[0]: list(node.input[1:])
        for node in model.graph.node
        if node.op_type == "QuantizeLinear"
    }


@FOR_TENSORRT
def test_pairs_stand_at_the_four_operands_and_nowhere_else_is_a_new_one(
    tiny: TinyModel, files: dict[str, onnx.ModelProto], scheme: str
) -> None:
    """Of the first layer: the second has one query per example."""
    attention = first_layer(tiny)
    operands = {*attention.measured, attention.probabilities}
    before = pairs_of(load_onnx(getattr(tiny, scheme)))
    assert pairs_of(files[scheme]).keys() - before.keys() == operands
    nodes = {node.name: node for node in files[scheme].graph.node}
    producers = {name: node for node in nodes.values() for name in node.output}
    read = [name for product in attention.products for name in nodes[product].input]
    assert {producers[name].op_type for name in read} == {"DequantizeLinear"}
    assert {producers[producers[name].input[0]].input[0] for name in read} == operands
    for name in read:
        assert [node.name for node in nodes.values() if name in node.input] == [
            next(one for one in attention.products if name in nodes[one].input)
        ]


@FOR_TENSORRT
def test_without_the_repair_every_other_operator_is_as_before(
    tiny: TinyModel, files: dict[str, onnx.ModelProto], scheme: str
) -> None:
    attention = first_layer(tiny)
    plain = {node.name: node for node in load_onnx(getattr(tiny, scheme)).graph.node}
    found = {node.name: node for node in files[scheme].graph.node}
    changed = {name for name in plain if plain[name] != found[name]}
    assert changed == set(attention.products)
    assert len(found) == len(plain) + 8


@FOR_TENSORRT
def test_a_scale_is_one_number_of_float16_and_that_of_probabilities_is_one_over_the_largest(
    tiny: TinyModel, files: dict[str, onnx.ModelProto], scheme: str
) -> None:
    attention, constants = first_layer(tiny), constants_of(files[scheme])
    ranges = read_cache(tiny.minmax, model=tiny.simplified)["ranges"]
    wanted = {name: max(map(abs, ranges[name])) for name in attention.measured}
    wanted[attention.probabilities] = 1.0
    for name, largest in wanted.items():
        scale, zero = (constants[one] for one in pairs_of(files[scheme])[name])
        assert (scale.shape, zero.shape, scale.dtype) == ((), (), np.float32)
        assert zero.dtype == {"s8s8": np.int8, "e4m3": E4M3}[scheme]
        assert not zero.astype(np.float32)
        assert scale.astype(np.float16) == scale
        assert scale == pytest.approx(largest / LARGEST[scheme], rel=2**-11)


@pytest.mark.parametrize(("scheme", "tolerance"), [("s8s8", 0.05), ("e4m3", 0.15)])
def test_answers_are_those_of_the_float_model(
    tiny: TinyModel,
    files: dict[str, onnx.ModelProto],
    batches: list[Arrays],
    scheme: str,
    tolerance: float,
) -> None:
    """On ONNX Runtime's CPU provider; the tolerance is relative to the largest logit."""
    floats = run_onnx(load_onnx(tiny.simplified), batches, threads=1)
    plain = run_onnx(load_onnx(getattr(tiny, scheme)), batches, threads=1)
    found = run_onnx(files[scheme], batches, threads=1)
    for ours, before, theirs in zip(found, plain, floats, strict=True):
        assert np.abs(ours - theirs).max() <= tolerance * np.abs(theirs).max()
        np.testing.assert_array_equal(ours.argmax(1), theirs.argmax(1))
        assert (ours != before).any()


@pytest.mark.parametrize(
    ("scheme", "repair"),
    [
        ("s8s8", {"bias_correction": True, "outputs": True}),
        ("e4m3", {"smoothquant": 0.5}),
        ("e4m3", {"float": ["*layer.0.*"]}),
    ],
    ids=str,
)
def test_it_goes_with_the_other_repairs(
    tiny: TinyModel, batches: list[Arrays], tmp_path: Path, scheme: str, repair: dict[str, Any]
) -> None:
    model = quantized(tiny, tmp_path / "a.onnx", scheme, **repair)
    onnx.checker.check_model(model, full_check=True)
    onnx.checker.check_model(typed(model, PRECISION[scheme]), full_check=True)
    attention = first_layer(tiny)
    assert {*attention.measured, attention.probabilities} <= pairs_of(model).keys()
    expected = np.concatenate(run_onnx(load_onnx(tiny.simplified), batches, threads=1))
    found = np.concatenate(run_onnx(model, batches, threads=1))
    assert (found.argmax(1) == expected.argmax(1)).mean() > 0.98


def test_a_cache_without_these_ranges_is_refused_by_name(tiny: TinyModel, tmp_path: Path) -> None:
    """As one that was imported: calibration in TensorRT may have fused the tensor away."""
    cache = read_cache(tiny.minmax, model=tiny.simplified)
    del cache["schema"], cache["ranges"][first_layer(tiny).key]
    write_cache(tmp_path / "a.json", **cache)
    paths = tiny.simplified, tmp_path / "a.json", tmp_path / "a.onnx"
    words = r"a\.json: has no range for \S+, which a product of attention reads \(1 of 3 lack one\)"
    with pytest.raises(TightropeError, match=words):
        quantize_onnx(*paths, scheme="s8s8", repair={"attention": True})
    quantize_onnx(*paths, scheme="s8s8")
    assert (tmp_path / "a.onnx").read_bytes() == tiny.s8s8.read_bytes()


def test_a_range_of_probabilities_from_a_cache_is_not_used(
    tiny: TinyModel, files: dict[str, onnx.ModelProto], tmp_path: Path
) -> None:
    cache = read_cache(tiny.minmax, model=tiny.simplified)
    del cache["schema"]
    cache["ranges"][first_layer(tiny).probabilities] = [0.0, 0.01]
    write_cache(tmp_path / "a.json", **cache)
    paths = tiny.simplified, tmp_path / "a.json", tmp_path / "a.onnx"
    quantize_onnx(*paths, scheme="e4m3", repair={"attention": True})
    assert load_onnx(tmp_path / "a.onnx") == files["e4m3"]


def test_schemes_of_onnx_runtime_refuse_it(tiny: TinyModel, tmp_path: Path) -> None:
    with pytest.raises(TightropeError, match="only TensorRT's schemes quantize attention: take"):
        quantized(tiny, tmp_path / "a.onnx", "u8s8")
    assert not (tmp_path / "a.onnx").exists()


@pytest.mark.parametrize(
    ("width", "in_int8", "in_fp8"),
    [(8, False, False), (16, True, True), (48, False, True), (64, True, True), (72, False, False)],
)
def test_heads_that_tensorrt_does_not_fuse_stay_in_float(
    width: int, in_int8: bool, in_fp8: bool
) -> None:
    model = parser.parse_model(HEADS.replace("WIDTH", str(width)))
    table = np.random.default_rng(0).standard_normal((50, width), np.float32)
    model.graph.initializer.append(numpy_helper.from_array(table, "table"))
    for kind, fits in ((TensorProto.INT8, in_int8), (TensorProto.FLOAT8E4M3FN, in_fp8)):
        found, others = attention_to_quantize(model, kind)
        assert [one.softmax for one in found] == (["softmax"] if fits else [])
        sizes = "16, 32, 64" if kind == TensorProto.INT8 else "multiples of 16 up to 256"
        reason = f"heads of {width} channels, not {sizes}"
        assert others == ({} if fits else {"softmax": reason})


def test_a_model_without_attention_is_refused() -> None:
    words = r"net\.onnx: no attention to quantize \(it has no Softmax\): take `attention` out of"
    with pytest.raises(TightropeError, match=words):
        attention_of(SCHEMES["s8s8"], make_convolutions(), {"attention": True}, path="net.onnx")


@FOR_TENSORRT
def test_the_audit_has_the_noise_of_every_operand(
    tiny: TinyModel, tmp_path: Path, scheme: str
) -> None:
    quantized(tiny, tmp_path / "a.onnx", scheme)
    examples = read_split(tiny.split("calibration"))[:12]
    rows = load_encoder(tiny.checkpoint, max_sequence=LONGEST)(examples)
    attention = first_layer(tiny)
    plain = quantization_noise(getattr(tiny, scheme), rows, threads=1)
    found = quantization_noise(tmp_path / "a.onnx", rows, threads=1)
    added = {(one["operator"], one["tensor"]): one for one in found if one not in plain}
    assert len(found) == len(plain) + 4
    scores, mixed = attention.products
    assert added.keys() == {
        (scores, attention.query),
        (scores, attention.key),
        (mixed, attention.probabilities),
        (mixed, attention.value),
    }
    for one in added.values():
        assert (one["channel_ratio"], one["weight_ratio"], one["findings"]) == (1, 1, [])
        assert one["sqnr_db"] > 20
