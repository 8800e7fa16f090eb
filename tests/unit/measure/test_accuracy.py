from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from manifests import ENGINE
from onnx import numpy_helper
from splits import prepare_splits, split_of
from tightrope.artifacts.files import sha256
from tightrope.artifacts.manifest import write_manifest
from tightrope.errors import ArtifactError, TightropeError
from tightrope.inputs.arrays import stack
from tightrope.inputs.encode import read_split
from tightrope.jobs import child
from tightrope.jobs.child import Limits
from tightrope.measure import accuracy, answers
from tightrope.measure.accuracy import measure_accuracy
from tightrope.measure.answers import largest_batch
from tightrope.onnx.file import load_onnx, save_onnx
from tightrope.onnx.session import run_onnx
from tightrope.records.accuracy import AccuracyRecord
from tightrope.variants import Variant
from tiny_model import (
    LONGEST,
    TinyModel,
    artifacts_of,
    build_variant,
    evaluation_rows,
    executed_with,
    name_variant,
)

QUICK = name_variant("onnxruntime", "fp32")


def measured(model: TinyModel, engine: Path, folder: Path, **options: Any) -> AccuracyRecord:
    facts = {
        "model": "tiny",
        "variant": str(QUICK),
        "max_sequence": LONGEST,
        "max_seconds": 900,
        "libraries": {"onnxruntime": "1"},
        **options,
    }
    target = folder / "accuracy.json"
    artifacts = replace(
        artifacts_of(model, engine), data=facts.pop("data", model.split("evaluation"))
    )
    measure_accuracy(artifacts, target, execution=executed_with(facts), **facts)
    return AccuracyRecord.read(target)


@pytest.fixture(scope="module")
def engine(built: Callable[[Variant], Path]) -> Path:
    return built(QUICK)


@pytest.fixture(scope="module")
def record(
    tiny: TinyModel, engine: Path, tmp_path_factory: pytest.TempPathFactory
) -> AccuracyRecord:
    return measured(tiny, engine, tmp_path_factory.mktemp("accuracy"))


@pytest.fixture(scope="module")
def alone(tiny: TinyModel) -> np.ndarray:
    """Logits of each evaluation text, run alone, in the order of the split."""
    batches = [stack([row]) for row in evaluation_rows(tiny)]
    return np.concatenate(run_onnx(load_onnx(tiny.simplified), batches, threads=1))


def test_texts_that_were_cut_are_counted(
    tiny: TinyModel, engine: Path, record: AccuracyRecord, tmp_path: Path
) -> None:
    longer = sum(len(row["input_ids"]) > 20 for row in evaluation_rows(tiny))
    assert record.truncation is not None and record.truncation["truncated"] == 0
    cut = measured(tiny, engine, tmp_path, max_sequence=20).truncation
    texts = len(evaluation_rows(tiny))
    assert 0 < longer < texts
    assert cut == {"texts": texts, "truncated": longer, "max_sequence": 20}


def test_predictions_stand_in_the_order_of_the_split(
    tiny: TinyModel, record: AccuracyRecord, alone: np.ndarray
) -> None:
    assert record.labels == [one["label"] for one in read_split(split_of(tiny.data, "evaluation"))]
    assert record.predictions == alone.argmax(1).tolist()
    assert len(set(record.predictions)) == 3
    assert np.mean(np.array(record.predictions) == record.labels) > 0.95


def test_margins_are_the_highest_logit_less_the_second(
    record: AccuracyRecord, alone: np.ndarray
) -> None:
    ordered = np.sort(alone, axis=1)
    assert record.margins == pytest.approx((ordered[:, -1] - ordered[:, -2]).tolist(), abs=1e-4)
    assert min(record.margins) > 0


def test_logits_stand_in_the_order_of_the_split_as_the_engine_gave_them(
    record: AccuracyRecord, alone: np.ndarray
) -> None:
    assert (record.logits.shape, record.logits.dtype) == (alone.shape, np.float32)
    assert record.logits == pytest.approx(alone, abs=1e-4)
    assert np.argmax(record.logits, axis=1).tolist() == record.predictions
    ordered = np.sort(record.logits, axis=1)
    assert (ordered[:, -1] - ordered[:, -2]).tolist() == record.margins


@pytest.mark.parametrize("size", [1, 7, 80, 1000])
def test_predictions_are_the_same_whatever_the_batch_size(
    tiny: TinyModel,
    engine: Path,
    record: AccuracyRecord,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    size: int,
) -> None:
    monkeypatch.setattr(answers, "BATCH", size)
    found = measured(tiny, engine, tmp_path)
    assert found.predictions == record.predictions
    assert found.margins == pytest.approx(record.margins, abs=1e-4)


@pytest.mark.parametrize("size", [1, 33, 80])
def test_predictions_are_the_same_however_many_are_sorted_together(
    tiny: TinyModel,
    engine: Path,
    record: AccuracyRecord,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    size: int,
) -> None:
    monkeypatch.setattr(accuracy, "CHUNK", size)
    found = measured(tiny, engine, tmp_path)
    assert (found.predictions, found.labels) == (record.predictions, record.labels)
    assert found.margins == pytest.approx(record.margins, abs=1e-4)


@pytest.mark.parametrize("size", [1, 30])
def test_an_engine_that_is_too_slow_is_judged_on_the_first_examples(
    tiny: TinyModel,
    engine: Path,
    record: AccuracyRecord,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    size: int,
) -> None:
    monkeypatch.setattr(accuracy, "CHUNK", size)
    found = measured(tiny, engine, tmp_path, max_seconds=1e-9)
    assert (found.status, len(found.predictions)) == ("ok", size)
    assert found.labels == record.labels[:size]
    assert found.predictions == record.predictions[:size]
    assert found.margins == pytest.approx(record.margins[:size], abs=1e-4)
    assert len(found.logits) == size
    assert found.logits[0] == pytest.approx(record.logits[0], abs=1e-4)


def test_an_engine_of_smaller_buckets_than_the_batch_gives_the_same_predictions(
    tiny: TinyModel, record: AccuracyRecord, tmp_path: Path
) -> None:
    buckets = {"batch": [1, 3], "sequence": [32, LONGEST]}
    assert max(buckets["batch"]) < answers.BATCH
    options = {"route": "onnx", "blobs": False, "static_programs": None, "buckets": buckets}
    static, target = name_variant("openvino", "fp32"), tmp_path / "engine" / "engine.json"
    engine = build_variant(tiny, static, target, options=options)
    found = measured(tiny, engine, tmp_path, variant=str(static))
    assert (found.status, found.reason) == ("ok", None)
    assert found.predictions == record.predictions
    assert found.margins == pytest.approx(record.margins, abs=1e-3)


def test_the_record_says_what_was_measured_where_and_with_what(
    tiny: TinyModel, engine: Path, record: AccuracyRecord
) -> None:
    assert (record.model, record.variant, record.status) == ("tiny", str(QUICK), "ok")
    assert record.engine_sha256 == sha256(engine)
    assert record.data_sha256 == sha256(tiny.split("evaluation"))
    assert record.libraries == {"onnxruntime": "1"}
    assert record.host["cores"] >= 1


def test_an_engine_that_was_not_built_is_a_failed_record_with_its_reason(
    tiny: TinyModel, tmp_path: Path
) -> None:
    failed = {"status": "failed", "reason": "no such operator", "variant": str(QUICK)}
    write_manifest(tmp_path / "engine.json", **{**ENGINE, **failed})
    found = measured(tiny, tmp_path / "engine.json", tmp_path)
    assert (found.status, found.reason) == ("failed", "not built: no such operator")
    assert (found.predictions, found.logits.size, found.labels) == ([], 0, None)


def test_data_without_labels_gives_a_record_without_predictions(
    tiny: TinyModel, engine: Path, tmp_path: Path
) -> None:
    data = tmp_path / "data" / "data.json"
    sizes = {"train": None, "evaluation": 4}
    prepare_splits(data, source="random", columns={}, splits=sizes, pool=4, seed=0)
    found = measured(tiny, engine, tmp_path, data=split_of(data, "evaluation"))
    assert (found.status, found.predictions, found.labels) == ("ok", [], None)


def test_logits_that_are_not_numbers_are_a_failure(tiny: TinyModel, tmp_path: Path) -> None:
    model = load_onnx(tiny.simplified)
    bias = next(one for one in model.graph.initializer if one.name.endswith("classifier.bias"))
    broken = np.array([0, np.nan, 0], dtype=np.float32)
    bias.CopyFrom(numpy_helper.from_array(broken, bias.name))
    save_onnx(model, tmp_path / "model.onnx")
    target = tmp_path / "engine" / "engine.json"
    engine = build_variant(tiny, QUICK, target, source=tmp_path / "model.onnx")
    found = measured(tiny, engine, tmp_path)
    assert (found.status, found.reason) == ("failed", "gives logits that are not numbers")
    assert found.transient is False
    assert found.predictions == []


def test_a_harmed_engine_is_an_error_and_no_record(
    tiny: TinyModel, engine: Path, tmp_path: Path
) -> None:
    for file in engine.parent.iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    (tmp_path / "model.onnx").write_bytes((tmp_path / "model.onnx").read_bytes()[:-9])
    with pytest.raises(ArtifactError, match=r"model\.onnx: "):
        measured(tiny, tmp_path / "engine.json", tmp_path)
    assert not (tmp_path / "accuracy.json").exists()


def test_a_measurement_beyond_its_limits_is_tried_again_before_it_has_failed(
    tiny: TinyModel, engine: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(child, "POLL_SECONDS", 0.001)  # these few texts take no half second
    tight = Limits(memory_bytes=1e6, seconds=60, last_attempt=False)
    with pytest.raises(TightropeError, match=f"{QUICK}: killed .* another attempt follows"):
        measured(tiny, engine, tmp_path, limits=tight)
    assert not (tmp_path / "accuracy.json").exists()
    found = measured(tiny, engine, tmp_path, limits=Limits(memory_bytes=1e6, seconds=60))
    assert (found.status, found.transient) == ("failed", True)


@pytest.mark.parametrize(
    ("options", "rows"),
    [
        ({}, 32),
        ({"buckets": None}, 32),
        ({"buckets": {"batch": [1, 16], "sequence": [64]}}, 16),
        ({"buckets": {"batch": [64], "sequence": [64]}}, 32),
        ({"profiles": [[[1, 1], [8, 64], [12, 128]], [[1, 1], [1, 64], [4, 128]]]}, 12),
        # a batch may be of the longest texts
        ({"profiles": [[[1, 1], [1, 512], [1, 512]], [[1, 1], [8, 64], [64, 128]]]}, 1),
    ],
)
def test_a_batch_is_no_larger_than_what_the_engine_was_built_for(
    options: dict[str, Any], rows: int
) -> None:
    assert largest_batch(options) == rows


def test_it_tells_how_many_examples_are_predicted(
    tiny: TinyModel,
    engine: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    told: Callable[[], dict[str, list[int]]],
) -> None:
    monkeypatch.setattr(answers, "BATCH", 20)
    monkeypatch.setattr(accuracy, "CHUNK", 40)
    count = len(measured(tiny, engine, tmp_path).predictions)
    expected = [100 * done / count for done in range(0, count, 20)]
    assert told()["predicting"] == pytest.approx([*expected, 99, 100], abs=1)


def test_a_slow_engine_tells_how_much_of_its_time_is_over(
    tiny: TinyModel,
    engine: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    told: Callable[[], dict[str, list[int]]],
) -> None:
    monkeypatch.setattr(answers, "BATCH", 1)
    monkeypatch.setattr(accuracy, "CHUNK", 10)
    measured(tiny, engine, tmp_path, max_seconds=1e-3)
    assert told()["predicting"][1] == 99
