"""What TensorRT gets in eight bits: attention, as its repair asks for, and what stays in float.

Answers of these files: test_quantize.py. Their types: tests/engines/test_architectures.py.
"""

from pathlib import Path
from typing import Any

import pytest
from onnx import TensorProto
from onnx_text import drawn, onnx_model
from quantized_files import quantized, with_ranges
from tightrope.errors import TightropeError
from tightrope.int8.quantization_noise import quantization_noise
from tightrope.int8.quantize import attention_of
from tightrope.int8.schemes import SCHEMES, attention_to_quantize, kept_in_float
from tightrope.onnx.attention import Attention, attention_in
from tightrope.onnx.file import load_onnx
from tiny_convolutions import make_convolutions
from tiny_model import TinyModel

FOR_TENSORRT = pytest.mark.parametrize("scheme", ["s8s8", "e4m3"])
LARGEST = {"s8s8": 127, "e4m3": 448}
HEADS = """net (int64[batch, sequence] input_ids, int64[batch, sequence] attention_mask)
    => (float[batch, sequence, WIDTH] logits)
{
    x = Gather (table, input_ids)
    turned = Transpose <perm = [0, 2, 1]> (x)
    [first] scores = MatMul (x, turned)
    [softmax] weights = Softmax (scores)
    [second] logits = MatMul (weights, x)
}"""


@pytest.fixture(scope="module")
def files(tiny: TinyModel, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("attention")
    # a range of probabilities that a cache may have is not used
    cache = with_ranges(tiny, folder / "a.json", {first_layer(tiny).probabilities: [0.0, 0.01]})
    for scheme in LARGEST:
        quantized(tiny, folder / f"{scheme}.onnx", scheme, cache=cache, attention=True)
    return {scheme: folder / f"{scheme}.onnx" for scheme in LARGEST}


def first_layer(tiny: TinyModel) -> Attention:
    """The second has one query per example, so it stays in float."""
    return attention_in(load_onnx(tiny.simplified))[0][0]


def test_a_cache_without_these_ranges_is_refused_by_name(tiny: TinyModel, tmp_path: Path) -> None:
    """As one that was imported: calibration in TensorRT may have fused the tensor away."""
    cache = with_ranges(tiny, tmp_path / "a.json", {first_layer(tiny).key: []})
    target = tmp_path / "a"
    words = r"a\.json: has no range for \S+ \(1 of \d+ that are needed\).*take `attention` out"
    with pytest.raises(TightropeError, match=words):
        quantized(tiny, target, "s8s8", cache=cache, attention=True)
    quantized(tiny, target, "s8s8", cache=cache)
    assert target.read_bytes() == tiny.s8s8.read_bytes()


def test_other_schemes_and_models_without_attention_refuse(tiny: TinyModel, tmp_path: Path) -> None:
    with pytest.raises(TightropeError, match="only TensorRT's schemes quantize attention: take"):
        quantized(tiny, tmp_path / "a.onnx", "u8s8", attention=True)
    assert not (tmp_path / "a.onnx").exists()
    words = r"net\.onnx: no attention to quantize \(it has no Softmax\): take `attention` out of"
    with pytest.raises(TightropeError, match=words):
        attention_of(SCHEMES["s8s8"], make_convolutions(), {"attention": True}, path="net.onnx")
    long: dict[str, Any] = {"path": "net.onnx", "longest": 513}
    model = load_onnx(tiny.simplified)
    assert attention_of(SCHEMES["e4m3"], model, {"attention": True}, **long)
    with pytest.raises(TightropeError, match=r"up to 512 tokens .* max_sequence is 513: take"):
        attention_of(SCHEMES["s8s8"], model, {"attention": True}, **long)


@pytest.mark.parametrize(
    ("width", "in_int8", "in_fp8"), [(48, False, True), (64, True, True), (72, False, False)]
)
def test_heads_without_fusion_stay_in_float(width: int, in_int8: bool, in_fp8: bool) -> None:
    model = onnx_model(HEADS.replace("WIDTH", str(width)), table=drawn(50, width))
    for kind, fits in ((TensorProto.INT8, in_int8), (TensorProto.FLOAT8E4M3FN, in_fp8)):
        found, others = attention_to_quantize(model, kind)
        assert [one.softmax for one in found] == (["softmax"] if fits else [])
        sizes = "16, 32, 64" if kind == TensorProto.INT8 else "multiples of 16 up to 256"
        reason = f"heads of {width} channels, not {sizes}"
        assert others == ({} if fits else {"softmax": reason})


@FOR_TENSORRT
def test_the_noise_of_every_operand_is_known(tiny, files, pool, scheme) -> None:
    attention = first_layer(tiny)
    plain, found = (
        quantization_noise(path, pool[:12], threads=1)
        for path in (getattr(tiny, scheme), files[scheme])
    )
    added = {(one["operator"], one["tensor"]): one for one in found if one not in plain}
    assert len(found) == len(plain) + 4
    scores, mixed = attention.products
    assert added.keys() == {
        *((scores, name) for name in (attention.query, attention.key)),
        *((mixed, name) for name in (attention.probabilities, attention.value)),
    }
    for one in added.values():
        assert (one["channel_ratio"], one["weight_ratio"], one["findings"]) == (1, 1, [])
        assert one["sqnr_db"] > 20


IMAGES = """net (float[batch, 3, 8, 8] pixel_values) => (float[batch, 5] logits)
{
    [stem] a = Conv <pads = [1, 1, 1, 1]> (pixel_values, w_stem)
    [depthwise] b = Conv <group = 32, pads = [1, 1, 1, 1]> (a, w_depthwise)
    [grouped] c = Conv <group = 2, pads = [1, 1, 1, 1]> (b, w_grouped)
    [plain] d = Conv (c, w_plain)
    mean = GlobalAveragePool (d)
    flat = Flatten (mean)
    [head] logits = MatMul (flat, w_head)
}"""
TEXTS = """net (int64[batch, sequence] input_ids, int64[batch, sequence] attention_mask)
    => (float[batch, 32] logits)
{
    embedded = Gather (table, input_ids)
    [wide] a = MatMul (embedded, w_wide)
    [narrow] b = MatMul (a, w_narrow)
    [odd] c = MatMul (b, w_odd)
    [back] d = MatMul (c, w_back)
    first = Gather <axis = 1> (d, zero)
    [head] logits = Gemm (first, w_head)
}"""


def test_the_first_convolution_depthwise_ones_and_the_head_stay_in_float() -> None:
    sizes = {"stem": (32, 3, 3, 3), "depthwise": (32, 1, 3, 3), "grouped": (32, 16, 3, 3)}
    sizes |= {"plain": (64, 32, 1, 1), "head": (64, 5)}
    model = onnx_model(IMAGES, **{f"w_{name}": drawn(*size) for name, size in sizes.items()})
    assert kept_in_float(model, TensorProto.INT8) == {
        "stem": "the first convolution",
        "depthwise": "a depthwise convolution",
        "head": "one row per example",
    }


def test_small_products_stay_in_float_and_in_fp8_those_of_other_multiples() -> None:
    sizes = {"wide": (32, 64), "narrow": (64, 8), "odd": (8, 40), "back": (40, 32)}
    sizes |= {"head": (32, 32)}
    weights = {f"w_{name}": drawn(*size) for name, size in sizes.items()}
    model = onnx_model(TEXTS, table=drawn(50, 32), zero=0, **weights)
    small = "fewer than 16 channels"
    in_int8 = {"narrow": small, "odd": small, "head": "one row per example"}
    odd = {"back": "channels that are no multiple of 16"}
    assert kept_in_float(model, TensorProto.INT8) == in_int8
    assert kept_in_float(model, TensorProto.FLOAT8E4M3FN) == in_int8 | odd
