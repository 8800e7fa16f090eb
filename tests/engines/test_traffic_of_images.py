"""LoadGen's traffic on an engine of images: decoded before the clock starts, and not padded."""

from collections.abc import Callable
from pathlib import Path

import pytest
from studies import measured
from tightrope.studies import loadgen
from tightrope.studies.study import StudyRecord
from tightrope.studies.traffic import TIE, UNPADDED, Offline, Rehearsal, Sent, SingleStream, rows
from tightrope.variants import Variant, parse
from tiny_images import SIDE
from tiny_model import TinyModel

NAME = "cpu-onnxruntime-fp32"
SCENARIOS = ["single_stream", "offline"]
IMAGE_BYTES = 3 * SIDE * SIDE * 4


@pytest.fixture(scope="module")
def engine(built_images: Callable[[Variant], Path]) -> Path:
    return built_images(parse(NAME))


@pytest.fixture(scope="module")
def record(
    tiny_images: TinyModel, engine: Path, tmp_path_factory: pytest.TempPathFactory
) -> StudyRecord:
    target = tmp_path_factory.mktemp("traffic") / "v.traffic.json"
    return measured("traffic", tiny_images, engine, target, scenarios=SCENARIOS)


def answers(record: StudyRecord) -> Rehearsal:
    return next(one for one in record.calls if isinstance(one, Rehearsal))


def test_images_are_answered_and_nothing_is_padded(record: StudyRecord) -> None:
    assert (record.status, record.reason) == ("ok", None)
    sent, told, *tests = record.calls
    assert (sent, told.padding) == (Sent(samples=80, of=80), UNPADDED)
    single, offline = {type(test): test for test in tests}.values()
    assert (type(single), type(offline)) == (SingleStream, Offline)
    assert 0 < single.p50_s <= single.p90_s <= single.p99_s
    assert offline.valid is True
    assert offline.samples / 4 <= offline.batches <= offline.samples
    assert offline.tokens == offline.padded_tokens == 0
    assert record.shape == {"height": SIDE, "width": SIDE}
    (row,) = rows(record, True)
    assert (row.padding, row.gain, row.padding_share) == (UNPADDED, None, None)
    assert row.samples_per_s > 0


def test_of_more_images_than_may_be_held_the_first_are_sent(
    record: StudyRecord,
    tiny_images: TinyModel,
    engine: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(loadgen, "IMAGE_BYTES", 10 * IMAGE_BYTES)
    some = measured("traffic", tiny_images, engine, tmp_path / "v.traffic.json")
    assert some.calls[0] == Sent(samples=10, of=80)
    for key in ("predictions", "margins"):
        first = getattr(answers(record), key)[:10]
        assert getattr(answers(some), key) == pytest.approx(first, abs=TIE)
    log = (tmp_path / "v.traffic/none-offline-1/mlperf_log_detail.txt").read_text()
    assert '"key": "qsl_reported_performance_count", "value": 10' in log
