from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from manifests import ENGINE
from onnx import numpy_helper
from splits import split_of
from tightrope.artifacts.files import read_json
from tightrope.artifacts.manifest import write_manifest
from tightrope.inputs.encode import load_encoder, read_split
from tightrope.int8.calibrate import read_cache, write_cache
from tightrope.int8.quantization_noise import quantization_noise
from tightrope.int8.quantize import quantize_onnx
from tightrope.measure.audit import audit_variant, collapse
from tightrope.onnx.file import load_onnx
from tightrope.variants import parse
from tiny_model import EXECUTION, LONGEST, TinyModel, artifacts_of, build_variant

NAME = "cpu-onnxruntime-int8-minmax-24"
OPERATOR = "bert.encoder.layer.1.output.dense"
QUERY = "bert.encoder.layer.0.attention.self.query"


@pytest.fixture
def audited(tiny: TinyModel, tmp_path: Path) -> Callable[..., dict[str, Any]]:
    """The audit of an engine of a quantized file, or of another engine."""

    def audited(source: Path, quantized: Path | None, engine: Path | None = None) -> dict[str, Any]:
        target = tmp_path / "a.json"
        if engine is None:
            engine = build_variant(tiny, parse(NAME), tmp_path / "e/engine.json", source=source)
        artifacts = artifacts_of(tiny, engine, "calibration")
        settings = {"variant": NAME, "max_sequence": LONGEST, "execution": EXECUTION}
        audit_variant(artifacts, quantized, target, **settings)
        return read_json(target)

    return audited


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


def test_a_good_engine_passes_with_its_evidence_a_collapse_is_named(tiny, audited, tmp_path):
    record = audited(tiny.u8s8, tiny.u8s8)
    assert (record["status"], record["reason"]) == ("ok", None)
    assert record["answers"]["agreement"] > 0.9
    assert record["answers"]["samples"] == 40
    assert [one["findings"] for one in record["tensors"]] == [[]] * 14
    bad = scaled(tiny, tmp_path / "bad.onnx", "layer_norm", 1000)
    record = audited(bad, bad)
    assert record["status"] == "collapsed"
    fault = "at fault: operator bert.encoder.layer."
    for words in ("collapsed: ", fault, "tensor layer_norm", "of 256 levels"):
        assert words in record["reason"]


def test_one_that_quantizes_itself_is_judged_by_its_answers(tiny, audited, tmp_path) -> None:
    record = audited(tiny.u8s8, None)
    assert (record["status"], record["tensors"]) == ("ok", [])
    engine = tmp_path / "e/engine.json"
    (tmp_path / "e/model.onnx").write_bytes(b"")
    with pytest.raises(Exception, match=r"model\.onnx"):
        audited(tiny.u8s8, tiny.u8s8, engine)
    write_manifest(engine, **{**ENGINE, "status": "failed", "reason": "killed", "variant": NAME})
    record = audited(tiny.u8s8, tiny.u8s8, engine)
    assert (record["status"], record["reason"]) == ("failed", "not built: killed")


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


ANSWERS = {
    **{"samples": 128, "agreement": 0.97, "chance": 0.25},
    "accuracy": {"value": 0.85, "low": 0.78, "high": 0.9},
    "float_accuracy": {"value": 0.86, "low": 0.79, "high": 0.91},
    **{"commonest": 0.3, "float_commonest": 0.3},
}
CHANCE = {"value": 0.3, "low": 0.22, "high": 0.38}


def test_a_collapse_is_one_answer_or_chance_where_float_is_better() -> None:
    one, few = {"commonest": 1.0, "agreement": 0.3}, {"accuracy": CHANCE, "agreement": 0.3}
    assert collapse({**ANSWERS, **one}) == "one answer to 100 % of 128 examples"
    reason = "accuracy 30 % of 128 examples, 86 % in float, 25 % by chance"
    assert collapse({**ANSWERS, **few}) == reason
    for change in (
        {},
        {**one, "float_commonest": 0.99},
        # one answer more is no collapse, however near to an edge the model was
        {"commonest": 0.985, "float_commonest": 0.975, "agreement": 0.99},
        # a model that never was better than chance has not collapsed
        {**few, "float_accuracy": CHANCE},
        {"accuracy": {"value": 0.6, "low": 0.51, "high": 0.68}, "agreement": 0.6},
    ):
        assert collapse({**ANSWERS, **change}) is None
