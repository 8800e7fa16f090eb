from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from manifests import ENGINE
from onnx import numpy_helper
from splits import split_of
from tightrope.artifacts.files import read_json
from tightrope.artifacts.manifest import write_manifest
from tightrope.inputs.encode import load_encoder, read_split
from tightrope.int8.cache import read_cache, write_cache
from tightrope.int8.quantization_noise import quantization_noise
from tightrope.int8.quantize import quantize_onnx
from tightrope.measure.audit import audit_variant, collapse
from tightrope.onnx.file import load_onnx
from tightrope.variants import parse
from tiny_model import (
    EXECUTION,
    LONGEST,
    TinyModel,
    artifacts_of,
    build_variant,
)

NAME = "cpu-onnxruntime-int8-minmax-24"
OPERATOR = "bert.encoder.layer.1.output.dense"


def audit(tiny: TinyModel, engine: Path, quantized: Path | None, target: Path) -> dict:
    audit_variant(
        artifacts_of(tiny, engine, "calibration"),
        quantized,
        target,
        variant=NAME,
        max_sequence=LONGEST,
        execution=EXECUTION,
    )
    return read_json(target)


def with_ranges(tiny: TinyModel, target: Path, change) -> Path:
    """The model quantized by a cache in which `change` was made to the ranges."""
    cache = read_cache(tiny.minmax, model=tiny.simplified)
    change(cache["ranges"])
    write_cache(target.with_suffix(".json"), **cache)
    quantize_onnx(tiny.simplified, target.with_suffix(".json"), target, scheme="u8s8")
    return target


def narrow(ranges: dict) -> None:
    """What a bad percentile does: next to nothing is left of the range of one tensor."""
    ranges["gelu_1"] = [value / 2000 for value in ranges["gelu_1"]]


@pytest.fixture(scope="module")
def rows(tiny: TinyModel) -> list:
    examples = read_split(split_of(tiny.data, "calibration"))[:24]
    return load_encoder(tiny.checkpoint, max_sequence=LONGEST)(examples)


def engine_of(tiny: TinyModel, quantized: Path, folder: Path) -> Path:
    return build_variant(tiny, parse(NAME), folder / "engine.json", source=quantized)


def test_a_good_engine_passes_with_its_evidence(tiny: TinyModel, tmp_path: Path) -> None:
    record = audit(tiny, engine_of(tiny, tiny.u8s8, tmp_path / "e"), tiny.u8s8, tmp_path / "a.json")
    assert (record["status"], record["reason"]) == ("ok", None)
    assert record["answers"]["agreement"] > 0.9
    assert record["answers"]["samples"] == 40
    assert len(record["tensors"]) == 14
    assert [one["findings"] for one in record["tensors"]] == [[]] * 14


def test_a_collapse_is_found_and_named_with_operator_and_tensor(
    tiny: TinyModel, tmp_path: Path
) -> None:
    def ruin(ranges: dict) -> None:
        for name in ranges:
            if name.startswith("layer_norm"):
                ranges[name] = [value * 1000 for value in ranges[name]]

    bad = with_ranges(tiny, tmp_path / "bad.onnx", ruin)
    record = audit(tiny, engine_of(tiny, bad, tmp_path / "e"), bad, tmp_path / "a.json")
    assert record["status"] == "collapsed"
    assert record["reason"].startswith("collapsed: ")
    assert "at fault: operator bert.encoder.layer." in record["reason"]
    assert "tensor layer_norm" in record["reason"]
    assert "of 256 levels" in record["reason"]


def test_an_engine_that_quantizes_itself_is_judged_by_its_answers(
    tiny: TinyModel, tmp_path: Path
) -> None:
    record = audit(tiny, engine_of(tiny, tiny.u8s8, tmp_path / "e"), None, tmp_path / "a.json")
    assert (record["status"], record["tensors"]) == ("ok", [])


def test_an_engine_that_was_not_built_or_cannot_be_run_has_failed(
    tiny: TinyModel, tmp_path: Path
) -> None:
    engine = engine_of(tiny, tiny.u8s8, tmp_path / "e")
    (tmp_path / "e/model.onnx").write_bytes(b"")
    document = read_json(engine)
    with pytest.raises(Exception, match=r"model\.onnx"):
        audit(tiny, engine, tiny.u8s8, tmp_path / "a.json")
    write_manifest(engine, **{**ENGINE, "status": "failed", "reason": "killed", "variant": NAME})
    record = audit(tiny, engine, tiny.u8s8, tmp_path / "a.json")
    assert (record["status"], record["reason"]) == ("failed", "not built: killed")
    assert document["status"] == "ok"


def test_a_range_that_is_too_narrow_is_the_noisiest_and_says_how_much_it_cuts(
    tiny: TinyModel, rows: list, tmp_path: Path
) -> None:
    found = quantization_noise(with_ranges(tiny, tmp_path / "a.onnx", narrow), rows, threads=1)
    worst = found[0]
    assert (worst["operator"], worst["tensor"]) == (OPERATOR, "gelu_1")
    assert worst["saturated"] > 0.5
    assert "lie beyond the range" in worst["findings"][0]
    assert all(not one["findings"] for one in found[1:])


def test_a_range_that_is_too_wide_leaves_few_levels(
    tiny: TinyModel, rows: list, tmp_path: Path
) -> None:
    def widen(ranges: dict) -> None:
        ranges["gelu_1"] = [value * 100 for value in ranges["gelu_1"]]

    worst = quantization_noise(with_ranges(tiny, tmp_path / "a.onnx", widen), rows, threads=1)[0]
    assert (worst["operator"], worst["saturated"]) == (OPERATOR, 0)
    assert worst["levels"] <= 4
    assert worst["findings"] == [f"its values reach {worst['levels']} of 256 levels"]


def test_rounding_is_that_of_the_file(tiny: TinyModel, rows: list) -> None:
    """Signal to noise of one tensor, computed here from its step in the file."""
    found = {one["operator"]: one for one in quantization_noise(tiny.u8s8, rows, threads=1)}
    one = found["bert.encoder.layer.0.attention.self.query"]
    constants = {t.name: numpy_helper.to_array(t) for t in load_onnx(tiny.u8s8).graph.initializer}
    step = float(constants["layer_norm_scale"])
    assert one["high"] - one["low"] == pytest.approx(255 * step, rel=1e-5)
    cache = read_cache(tiny.minmax, model=tiny.simplified)
    assert [one["measured_low"], one["measured_high"]] == pytest.approx(
        cache["ranges"]["layer_norm"], abs=1e-4
    )
    # noise of rounding to a step is step²/12 (Widrow 1956); of a normalized layer the signal is 1
    assert one["sqnr_db"] == pytest.approx(10 * np.log10(12 / step**2), abs=2)


def test_rounding_to_e4m3_is_that_of_the_file(tiny: TinyModel, rows: list) -> None:
    """Three bits of mantissa: noise of a twelfth of the spacing squared, whatever the size."""
    found = {one["operator"]: one for one in quantization_noise(tiny.e4m3, rows, threads=1)}
    assert len(found) == 8  # the others stay in float for TensorRT
    one = found["bert.encoder.layer.0.attention.self.query"]
    constants = {t.name: numpy_helper.to_array(t) for t in load_onnx(tiny.e4m3).graph.initializer}
    scale = float(constants["layer_norm_scale"])
    assert [one["low"], one["high"]] == pytest.approx([-448 * scale, 448 * scale])
    assert 16 < one["levels"] <= 253
    # f times a power of two, f from 1 to 2, has steps of an eighth of it: 12 * 64 * f²
    assert 28 < one["sqnr_db"] < 35
    assert not one["findings"]


ANSWERS = {
    "samples": 128,
    "accuracy": {"value": 0.85, "low": 0.78, "high": 0.9},
    "float_accuracy": {"value": 0.86, "low": 0.79, "high": 0.91},
    "agreement": 0.97,
    "commonest": 0.3,
    "float_commonest": 0.3,
    "chance": 0.25,
}


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({}, None),
        ({"commonest": 1.0, "agreement": 0.3}, "one answer to 100 % of 128 examples"),
        ({"commonest": 1.0, "agreement": 0.3, "float_commonest": 0.99}, None),
        (
            {"accuracy": {"value": 0.3, "low": 0.22, "high": 0.38}, "agreement": 0.3},
            "accuracy 30 % of 128 examples, 86 % in float, 25 % by chance",
        ),
        # one answer more is no collapse, however near to an edge the model was
        ({"commonest": 0.985, "float_commonest": 0.975, "agreement": 0.99}, None),
        # a model that never was better than chance has not collapsed
        (
            {
                "accuracy": {"value": 0.3, "low": 0.22, "high": 0.38},
                "float_accuracy": {"value": 0.3, "low": 0.22, "high": 0.38},
                "agreement": 0.3,
            },
            None,
        ),
        ({"accuracy": {"value": 0.6, "low": 0.51, "high": 0.68}, "agreement": 0.6}, None),
    ],
)
def test_a_collapse_is_one_answer_or_chance_where_float_is_better(
    change: dict, reason: str | None
) -> None:
    assert collapse({**ANSWERS, **change}) == reason


def test_it_tells_how_many_samples_it_has_predicted_and_looked_into(
    tiny: TinyModel, tmp_path: Path, told: Callable[[], dict[str, list[int]]]
) -> None:
    audit(tiny, engine_of(tiny, tiny.u8s8, tmp_path / "e"), tiny.u8s8, tmp_path / "a.json")
    steps = told()
    assert list(steps) == ["predicting", "quantization noise"]
    for percents in steps.values():
        assert len(set(percents)) > 5
        assert percents == sorted(percents)
        assert percents[-1] == 100
