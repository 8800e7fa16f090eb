from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import numpy_helper
from splits import split_of
from tightrope.inputs.encode import load_encoder, read_split
from tightrope.int8.calibrate import read_cache, write_cache
from tightrope.int8.quantization_noise import quantization_noise
from tightrope.int8.quantize import quantize_onnx
from tightrope.measure.accuracy import collapse, collapsed, measure_accuracy
from tightrope.onnx.file import load_onnx
from tightrope.records.accuracy import AccuracyRecord
from tightrope.variants import parse
from tiny_model import EXECUTION, LONGEST, TinyModel, artifacts_of, build_variant, name_variant

NAME, FLOAT = "cpu-onnxruntime-int8-minmax-24", name_variant("onnxruntime", "fp32")
OPERATOR = "bert.encoder.layer.1.output.dense"
QUERY = "bert.encoder.layer.0.attention.self.query"


def scaled(tiny: TinyModel, target: Path, name: str, factor: float) -> Path:
    """The model quantized with the ranges of tensors of that name as many times as wide."""
    cache = read_cache(tiny.minmax, model=tiny.simplified)
    for one in cache["ranges"]:
        if one.startswith(name):
            cache["ranges"][one] = [value * factor for value in cache["ranges"][one]]
    write_cache(target.with_suffix(".json"), **cache)
    quantize_onnx(tiny.simplified, target.with_suffix(".json"), target, scheme="u8s8")
    return target


@pytest.fixture(scope="module")
def rows(tiny: TinyModel) -> list[Any]:
    examples = read_split(split_of(tiny.data, "calibration"))[:24]
    return load_encoder(tiny.checkpoint, max_sequence=LONGEST)(examples)


def test_a_good_engine_has_not_collapsed_and_a_bad_one_names_its_tensor(tiny, built, tmp_path):
    artifacts, baseline = artifacts_of(tiny, built(FLOAT)), tmp_path / "float.accuracy.json"
    settings: Any = {"model": "tiny", "max_sequence": LONGEST, "max_seconds": 900}
    settings["execution"] = EXECUTION
    measure_accuracy(artifacts, baseline, variant=str(FLOAT), **settings)

    def judged(source: Path, quantized: Path | None) -> dict[str, Any]:
        engine = build_variant(tiny, parse(NAME), tmp_path / "e/engine.json", source=source)
        target, beside = (
            tmp_path / "a.accuracy.json",
            {"baseline": baseline, "quantized": quantized},
        )
        measure_accuracy(artifacts_of(tiny, engine), target, variant=NAME, **beside, **settings)
        return AccuracyRecord.read(target).collapsed

    assert judged(tiny.u8s8, tiny.u8s8) is None
    bad = scaled(tiny, tmp_path / "bad.onnx", "layer_norm", 1000)
    found = judged(bad, bad)
    fault = "at fault: operator bert.encoder.layer."
    for words in ("collapsed: ", fault, "tensor layer_norm", "of 256 levels"):
        assert words in found["reason"]
    assert len(found["tensors"]) == 14
    # one that quantizes itself
    found = judged(bad, None)
    assert found["reason"].endswith("so the operator at fault is not known")
    assert found["tensors"] == []


def test_a_range_that_is_too_narrow_or_too_wide_is_the_noisiest_and_says_why(tiny, rows, tmp_path):
    narrow, wide = (
        quantization_noise(scaled(tiny, tmp_path / name, "gelu_1", factor), rows, threads=1)
        for name, factor in (("narrow.onnx", 1 / 2000), ("wide.onnx", 100))
    )
    assert (narrow[0]["operator"], narrow[0]["tensor"]) == (OPERATOR, "gelu_1")
    assert narrow[0]["saturated"] > 0.5
    assert "lie beyond the range" in narrow[0]["findings"][0]
    assert all(not one["findings"] for one in narrow[1:])
    assert (wide[0]["operator"], wide[0]["saturated"]) == (OPERATOR, 0)
    assert wide[0]["levels"] <= 4
    assert wide[0]["findings"] == [f"its values reach {wide[0]['levels']} of 256 levels"]


def test_rounding_is_that_of_the_file(tiny: TinyModel, rows: list[Any]) -> None:
    """Signal to noise of one tensor, computed here from its step in the file."""
    found = {one["operator"]: one for one in quantization_noise(tiny.u8s8, rows, threads=1)}
    one = found[QUERY]
    constants = {t.name: numpy_helper.to_array(t) for t in load_onnx(tiny.u8s8).graph.initializer}
    step = float(constants["layer_norm_scale"])
    assert one["high"] - one["low"] == pytest.approx(255 * step, rel=1e-5)
    cache = read_cache(tiny.minmax, model=tiny.simplified)
    assert [one["measured_low"], one["measured_high"]] == pytest.approx(
        cache["ranges"]["layer_norm"], abs=1e-4
    )
    # noise of rounding to a step is step²/12 (Widrow 1956); of a normalized layer the signal is 1
    assert one["sqnr_db"] == pytest.approx(10 * np.log10(12 / step**2), abs=2)
    # to e4m3, of three bits of mantissa: a twelfth of the spacing squared, whatever the size
    found = {one["operator"]: one for one in quantization_noise(tiny.e4m3, rows, threads=1)}
    assert len(found) == 8  # the others stay in float for TensorRT
    one = found[QUERY]
    constants = {t.name: numpy_helper.to_array(t) for t in load_onnx(tiny.e4m3).graph.initializer}
    scale = float(constants["layer_norm_scale"])
    assert [one["low"], one["high"]] == pytest.approx([-448 * scale, 448 * scale])
    assert 16 < one["levels"] <= 253
    # f times a power of two, f from 1 to 2, has steps of an eighth of it: 12 * 64 * f²
    assert 28 < one["sqnr_db"] < 35
    assert not one["findings"]


def test_a_collapse_is_one_answer_or_chance_where_float_is_better() -> None:
    labels = [0] * 32 + [1] * 32 + [2] * 32 + [3] * 32
    float_, one, wrong = labels[:110] + [0] * 18, [0] * 128, labels[64:] + labels[:64]
    assert collapse(one, float_, labels) == "one answer to 100 % of 128 examples"
    reason = "accuracy 0 % of 128 examples, 86 % in float, 25 % by chance"
    assert collapse(wrong, float_, labels) == reason
    for found, expected in (
        (float_, float_),
        # float gives almost one answer too
        (one, [0] * 126 + [1, 2]),
        # one answer more is no collapse, however near to an edge the model was
        ([0] * 126 + [1, 2], [0] * 125 + [1, 2, 3]),
        # a model that never was better than chance has not collapsed
        (labels[32:] + labels[:32], wrong),
        # worse than float, but better than chance
        (labels[:77] + [0] * 51, float_),
    ):
        assert collapse(found, expected, labels) is None
    assert collapsed(one, [], labels, None) is None, "float has answered nothing"
