from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tiny_model
from manifests import ENGINE
from splits import prepare_splits, split_of
from tightrope.artifacts.files import sha256
from tightrope.artifacts.manifest import write_manifest
from tightrope.inputs.arrays import stack
from tightrope.inputs.encode import read_split
from tightrope.measure import accuracy
from tightrope.measure.accuracy import largest_batch, measure_accuracy
from tightrope.onnx.file import load_onnx
from tightrope.onnx.session import run_onnx
from tightrope.records.accuracy import AccuracyRecord
from tightrope.variants import Variant

QUICK = tiny_model.name_variant("onnxruntime", "fp32")
Measure = Callable[..., AccuracyRecord]


@pytest.fixture(scope="module")
def engine(built: Callable[[Variant], Path]) -> Path:
    return built(QUICK)


def measure(model, engine, target, **options) -> AccuracyRecord:
    facts = {"model": "tiny", "variant": str(QUICK), "max_sequence": tiny_model.LONGEST}
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
