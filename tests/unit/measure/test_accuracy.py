from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tiny_model
from manifests import ENGINE
from onnx import numpy_helper
from splits import prepare_splits, split_of
from tightrope.artifacts.files import sha256
from tightrope.artifacts.manifest import write_manifest
from tightrope.errors import WorkFailed
from tightrope.inputs.arrays import stack
from tightrope.inputs.encode import load_encoder, read_split
from tightrope.int8.calibrate import read_cache, write_cache
from tightrope.int8.quantization_noise import quantization_noise
from tightrope.int8.quantize import quantize_onnx
from tightrope.measure import accuracy
from tightrope.measure.accuracy import (
    answers,
    check_logits,
    collapse,
    collapsed,
    largest_batch,
    measure_accuracy,
)
from tightrope.onnx.file import load_onnx
from tightrope.onnx.session import run_onnx
from tightrope.records.accuracy import AccuracyRecord
from tightrope.variants import Variant, parse
from tiny_model import EXECUTION, LONGEST, TinyModel, artifacts_of, build_variant, name_variant

QUICK = tiny_model.name_variant("onnxruntime", "fp32")
Measure = Callable[..., AccuracyRecord]
INPUTS = {"input_ids": np.zeros((2, 8), np.int64), "attention_mask": np.ones((2, 8), np.int64)}
GOOD = np.array([[0.5, -1.0, 2.0], [3.0, 1.0, 0.0]], np.float32)
NAME, FLOAT = "cpu-onnxruntime-int8-minmax-24", name_variant("onnxruntime", "fp32")
OPERATOR = "bert.encoder.layer.1.output.dense"
QUERY = "bert.encoder.layer.0.attention.self.query"


@pytest.fixture(scope="module")
def engine(built: Callable[[Variant], Path]) -> Path:
    return built(QUICK)


def measure(model, engine, target, **options) -> AccuracyRecord:
    facts = {"max_sequence": tiny_model.LONGEST}
    facts |= {"max_seconds": 900, "libraries": {"onnxruntime": "1"}, **options}
    data = facts.pop("data", model.split("evaluation"))
    artifacts = replace(tiny_model.artifacts_of(model, engine), data=data)
    measure_accuracy(artifacts, target, execution=tiny_model.executed_with(facts), **facts)
    return AccuracyRecord.read(target)


@pytest.fixture
def measured(tiny: tiny_model.TinyModel, engine: Path, tmp_path: Path) -> Measure:
    """Measure the accuracy of the engine, or of another one."""

    def measured(other: Path | None = None, **options: Any) -> AccuracyRecord:
        return measure(tiny, other or engine, tmp_path / "accuracy.json", **options)

    return measured


@pytest.fixture(scope="module")
def record(tiny, engine, tmp_path_factory) -> AccuracyRecord:
    return measure(tiny, engine, tmp_path_factory.mktemp("accuracy") / "accuracy.json")


def test_answers_are_in_the_order_of_the_split_as_the_engine_gives_them_alone(tiny, engine, record):
    batches = [stack([row]) for row in tiny_model.evaluation_rows(tiny)]
    alone = np.concatenate(run_onnx(load_onnx(tiny.simplified), batches, threads=1))
    assert record.labels == [one["label"] for one in read_split(split_of(tiny.data, "evaluation"))]
    assert record.predictions == alone.argmax(1).tolist()
    assert len(set(record.predictions)) == 3
    assert np.mean(np.array(record.predictions) == record.labels) > 0.95
    assert (record.logits.shape, record.logits.dtype) == (alone.shape, np.float32)
    assert record.logits == pytest.approx(alone, abs=1e-4)
    ordered = np.sort(record.logits, axis=1)
    assert record.margins == (ordered[:, -1] - ordered[:, -2]).tolist()
    # where, with what and of what
    assert (record.model, record.variant, record.status) == ("tiny", str(QUICK), "ok")
    assert record.engine_sha256 == sha256(engine)
    assert record.data_sha256 == sha256(tiny.split("evaluation"))
    assert record.libraries == {"onnxruntime": "1"}
    assert record.host["cores"] >= 1


def test_one_that_is_too_slow_is_judged_on_the_first_examples(measured, record, monkeypatch, told):
    monkeypatch.setattr(accuracy, "CHUNK", 30)
    found = measured(max_seconds=1e-9)
    assert (found.status, len(found.predictions), len(found.logits)) == ("ok", 30, 30)
    assert (found.labels, found.predictions) == (record.labels[:30], record.predictions[:30])
    assert told()["predicting"][1] == 99, "its time is over"
    # with time for all parts the answers are those in one
    found = measured()
    assert (found.labels, found.predictions) == (record.labels, record.predictions)


def test_it_tells_how_many_are_predicted_and_how_many_were_cut(tiny, measured, monkeypatch, told):
    monkeypatch.setattr(accuracy, "BATCH", 20)
    monkeypatch.setattr(accuracy, "CHUNK", 40)
    lengths = [len(row["input_ids"]) for row in tiny_model.evaluation_rows(tiny)]
    longer, count = sum(length > 20 for length in lengths), len(lengths)
    assert 0 < longer < count
    cut = measured(max_sequence=20).truncation
    assert cut == {"texts": count, "truncated": longer, "max_sequence": 20}
    expected = [100 * done / count for done in range(0, count, 20)]
    assert told()["predicting"] == pytest.approx([*expected, 99, 100], abs=1)


def test_a_batch_is_no_larger_than_what_the_engine_was_built_for() -> None:
    shapes = [[[1, 1], [8, 64], [12, 128]], [[1, 1], [1, 64], [4, 128]]]
    longest = [[[1, 1], [1, 512], [1, 512]], [[1, 1], [8, 64], [64, 128]]]
    for options, size in (
        ({"buckets": None}, 32),
        ({"buckets": {"batch": [1, 16], "sequence": [64]}}, 16),
        ({"buckets": {"batch": [64], "sequence": [64]}}, 32),
        ({"profiles": shapes}, 12),
        # a batch may be of the longest texts
        ({"profiles": longest}, 1),
    ):
        assert largest_batch(options) == size


def test_without_an_engine_it_fails_and_without_labels_it_predicts_nothing(measured, tmp_path):
    failed = {"status": "failed", "reason": "no such operator", "variant": str(QUICK)}
    write_manifest(tmp_path / "engine.json", **{**ENGINE, **failed})
    found = measured(tmp_path / "engine.json")
    assert (found.status, found.reason) == ("failed", "not built: no such operator")
    assert (found.predictions, found.logits.size, found.labels) == ([], 0, None)
    data, sizes = tmp_path / "data/data.json", {"train": None, "evaluation": 4}
    prepare_splits(data, source="random", columns={}, splits=sizes, pool=4, seed=0)
    found = measured(data=split_of(data, "evaluation"))
    assert (found.status, found.predictions, found.labels) == ("ok", [], None)


def with_value(value: float) -> Any:
    logits = GOOD.copy()
    logits[1, 2] = value
    return logits


def test_logits_that_are_no_answers_fail_others_are_class_and_margin() -> None:
    for logits, reason in (
        (with_value(np.nan), "gives logits that are not numbers"),
        (with_value(np.inf), "gives logits that are not numbers"),
        (GOOD[:1], "gives outputs of shape [1, 3] in the place of [2, 3]"),
        (GOOD[:, :2], "gives outputs of shape [2, 2] in the place of [2, 3]"),
        (GOOD.ravel(), "gives outputs of shape [6] in the place of [2, 3]"),
        (None, "gives outputs of shape [] in the place of [2, 3]"),
    ):
        for check in (check_logits, answers):
            with pytest.raises(WorkFailed) as caught:
                check(logits, INPUTS, classes=3)
            assert (caught.value.reason, caught.value.transient) == (reason, False)
    check_logits(GOOD.tolist(), INPUTS, classes=3)
    before = GOOD.copy()
    found = answers(GOOD, INPUTS, classes=3)
    assert found == [(2, 1.5), (0, 2.0)]
    assert (before == GOOD).all()
    # plain numbers that a record can hold
    assert {(type(name), type(margin)) for name, margin in found} == {(int, float)}
    # a tie has no margin and goes to the first class
    ties = np.array([[1.0, 2.0, 2.0], [0.0, 0.0, 0.0]])
    assert answers(ties, INPUTS, classes=3) == [(1, 0.0), (0, 0.0)]


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
    settings: Any = {"max_sequence": LONGEST, "max_seconds": 900}
    settings["execution"] = EXECUTION
    measure_accuracy(artifacts, baseline, **settings)

    def judged(source: Path, quantized: Path | None) -> dict[str, Any]:
        engine = build_variant(tiny, parse(NAME), tmp_path / "e/engine.json", source=source)
        target, beside = (
            tmp_path / "a.accuracy.json",
            {"baseline": baseline, "quantized": quantized},
        )
        measure_accuracy(artifacts_of(tiny, engine), target, **beside, **settings)
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
