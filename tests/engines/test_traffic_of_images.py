"""LoadGen's traffic on an engine of images: decoded before the clock starts, and not padded."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from studies import measured
from tightrope.measure.accuracy import measure_accuracy
from tightrope.records.accuracy import AccuracyRecord
from tightrope.records.traffic import OfflineTest, SingleStreamTest, TrafficRecord
from tightrope.summary.traffic import TIE, traffic_entry
from tightrope.variants import Variant, parse
from tiny_images import SIDE
from tiny_model import EXECUTION, TinyModel, artifacts_of

NAME = "cpu-onnxruntime-fp32"
SCENARIOS = ("single_stream", "offline")
PLAN = {"scenarios": list(SCENARIOS), "padding": ["none"]}
IMAGE_BYTES = 3 * SIDE * SIDE * 4


@pytest.fixture(scope="module")
def engine(built_images: Callable[[Variant], Path]) -> Path:
    return built_images(parse(NAME))


def measure(
    tiny: TinyModel, engine: Path, target: Path, room: int = 2**30, **plan: Any
) -> TrafficRecord:
    return measured(
        "traffic", tiny, engine, target, facts={"image_bytes": room}, **{**PLAN, **plan}
    )


@pytest.fixture(scope="module")
def record(
    tiny_images: TinyModel, engine: Path, tmp_path_factory: pytest.TempPathFactory
) -> TrafficRecord:
    return measure(tiny_images, engine, tmp_path_factory.mktemp("traffic") / "v.traffic.json")


def test_images_are_answered_and_nothing_is_padded(record: TrafficRecord) -> None:
    assert (record.status, record.reason) == ("ok", None)
    assert {test.name for test in record.tests} == {"none"}
    single, offline = {type(test): test for test in record.tests}.values()
    assert (type(single), type(offline)) == (SingleStreamTest, OfflineTest)
    assert 0 < single.p50_s <= single.p90_s <= single.p99_s
    assert offline.valid is True
    assert offline.samples / 4 <= offline.batches <= offline.samples
    assert offline.tokens is offline.padded_tokens is None


def test_the_record_and_its_entry_have_the_size_of_the_images_and_no_lengths(
    record: TrafficRecord,
) -> None:
    assert (record.height, record.width, record.longest) == (SIDE, SIDE, None)
    assert (record.lengths, record.edges) == ([], [])
    entry = traffic_entry(record, accept_disturbed=True)
    (row,) = entry["rows"]
    assert (row["padding"], row["gain"], row["padding_share"]) == ("none", None, None)
    assert row["samples_per_s"] > 0
    assert (entry["samples"], entry["height"], entry["width"]) == (80, SIDE, SIDE)


def test_predictions_are_those_of_the_accuracy_record(
    record: TrafficRecord, tiny_images: TinyModel, engine: Path, tmp_path: Path
) -> None:
    options = {"max_sequence": 1, "max_seconds": 60, "execution": EXECUTION}
    path = tmp_path / "v.accuracy.json"
    inputs = artifacts_of(tiny_images, engine)
    measure_accuracy(inputs, path, model="tiny", variant=NAME, **options)
    alone, answers = AccuracyRecord.read(path), record.answers["none"]
    assert answers.margins == pytest.approx(alone.margins, abs=TIE)
    clear = [place for place, margin in enumerate(alone.margins) if margin > TIE]
    assert len(clear) > 70
    for place in clear:
        assert answers.predictions[place] == alone.predictions[place]


def test_of_more_images_than_may_be_held_the_first_are_sent(
    record: TrafficRecord, tiny_images: TinyModel, engine: Path, tmp_path: Path
) -> None:
    target = tmp_path / "v.traffic.json"
    some = measure(tiny_images, engine, target, 10 * IMAGE_BYTES, scenarios=["offline"])
    assert (some.status, some.samples) == ("ok", 10)
    for key in ("predictions", "margins"):
        first = getattr(record.answers["none"], key)[:10]
        assert getattr(some.answers["none"], key) == pytest.approx(first, abs=TIE)
    log = (tmp_path / "v.traffic/none-offline-1/mlperf_log_detail.txt").read_text()
    assert '"key": "qsl_reported_performance_count", "value": 10' in log
