"""LoadGen's traffic on broken and slow engines and of images; of texts: test_whole_traffic.py."""

import math
import multiprocessing
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from busy import PROCESSORS, busy_child
from studies import STUDIES, measured, spoil
from tightrope.machine.interference import MAX_FOREIGN_CORES
from tightrope.studies import loadgen
from tightrope.studies.loadgen import results
from tightrope.studies.study import StudyRecord
from tightrope.studies.traffic import (
    FEWEST_ROUNDS,
    TIE,
    UNPADDED,
    LoadGenTest,
    Offline,
    Sent,
    SingleStream,
    rows,
)
from tightrope.variants import Variant
from tiny_images import SIDE
from tiny_model import TinyModel, build_variant, name_variant

Measure = Callable[..., StudyRecord]
SLOW_S = 0.01


@pytest.fixture
def target(tmp_path: Path) -> Path:
    """Where the record of each test is written."""
    return tmp_path / "v.traffic.json"


@pytest.fixture
def measure(tiny: TinyModel, built: Callable[[Variant], Path], target: Path) -> Measure:
    """From changes of the plan to the record of an engine in fp32."""
    return partial(measured, "traffic", tiny, built(name_variant("onnxruntime", "fp32")), target)


@pytest.fixture
def harm(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    return partial(spoil, monkeypatch, "traffic")


def loadgen_tests(record: StudyRecord, kind: type[LoadGenTest] = LoadGenTest) -> list[Any]:
    """The tests of that kind."""
    return [one for one in record.calls if isinstance(one, kind)]


def logs_beside(target: Path) -> set[str]:
    """The folders of logs beside the record."""
    folder = target.with_suffix("")
    return {one.parent.name for one in folder.rglob("*") if one.is_file()}


def asked_by_loadgen(target: Path, scenario: str) -> Callable[[int], bool]:
    """Whether a test of the scenario has begun, so that no rehearsal is spoilt."""
    folder = target.with_suffix("")
    return lambda threads: any(folder.glob(f"*-{scenario}*"))


def raises(_: np.ndarray) -> None:
    raise RuntimeError("the kernel\nis broken")


def gives_nan(logits: np.ndarray) -> np.ndarray:
    return logits * np.nan


def is_slow(logits: np.ndarray) -> np.ndarray:
    time.sleep(SLOW_S)
    return logits


def test_no_time_is_less_than_what_the_engine_takes(measure: Measure, harm: Any) -> None:
    harm(is_slow)
    record = measure(scenarios=["single_stream", "offline"], padding=["longest"])
    (*_, single), (*_, offline) = (loadgen_tests(record, one) for one in (SingleStream, Offline))
    assert single.p50_s >= SLOW_S
    assert offline.samples_per_s <= 4 / SLOW_S
    assert offline.batches == math.ceil(offline.samples / 4)
    # LoadGen's own least duration is ten seconds
    assert offline.samples < 4 / SLOW_S


# logits of another shape are seen where those that are not numbers are:
# tests/unit/measure/test_accuracy.py; engines that die: test_throughput.py
@pytest.mark.parametrize(
    ("act", "reason", "scenario"),
    [
        (raises, "RuntimeError: the kernel", None),
        (gives_nan, "gives logits that are not numbers", "single_stream"),
    ],
)
def test_a_broken_engine_is_a_failed_record_with_the_cause(
    measure: Measure,
    target: Path,
    harm: Any,
    act: Callable[[np.ndarray], Any],
    reason: str,
    scenario: str | None,
) -> None:
    harm(act, *[asked_by_loadgen(target, scenario)] if scenario else [])
    record = measure(scenarios=[scenario or "offline"], padding=["longest"])
    assert (record.status, record.transient, loadgen_tests(record)) == ("failed", False, [])
    assert reason in record.reason and "\n" not in record.reason
    # the logs of the test that failed stay
    assert [one.startswith(f"longest-{scenario}") for one in logs_beside(target)] == (
        [True] if scenario else []
    )
    assert multiprocessing.active_children() == []


@pytest.fixture(scope="module")
def unbuilt(tiny: TinyModel, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The manifest of an engine that could not be built."""
    path = tmp_path_factory.mktemp("unbuilt") / "int8/engine.json"
    return build_variant(tiny, name_variant("onnxruntime", "int8"), path, source=tiny.simplified)


@pytest.mark.parametrize("study", STUDIES)
def test_an_engine_that_was_not_built_is_a_failed_record_of_each_study(
    study: str, tiny: TinyModel, unbuilt: Path, target: Path
) -> None:
    # the logs of another time are of no record, those of another variant are
    for name in (target.stem, "w.traffic"):
        stale = target.parent / name / "stale/log.txt"
        stale.parent.mkdir(parents=True)
        stale.write_text("of another time")
    record = measured(study, tiny, unbuilt, target)
    assert (record.status, record.calls, logs_beside(target)) == ("failed", [], set())
    assert record.reason == "not built: ran in fp32: no matrix product ran in int8"
    assert stale.is_file()


def test_a_log_without_a_result_is_an_error_that_names_it(tmp_path: Path) -> None:
    log = tmp_path / "mlperf_log_detail.txt"
    log.write_text(':::MLLOG {"key": "loadgen_version", "value": "6"}\n')
    for path in (log, tmp_path / "none.txt"):
        with pytest.raises(RuntimeError, match=f"{path.name}: LoadGen wrote no result"):
            results("Offline", path)


def test_a_rehearsal_that_was_hit_by_other_load_does_not_make_the_test_invalid(
    measure: Measure, target: Path, harm: Any
) -> None:
    begun = asked_by_loadgen(target, "")
    harm(is_slow, lambda threads: not begun(threads))
    assert loadgen_tests(measure(padding=["longest"]))[-1].valid


def test_a_disturbed_test_is_repeated_while_time_may_be_lost(measure: Measure) -> None:
    with busy_child(PROCESSORS[-1]):
        found = measure(quiet_seconds=1.0)
    assert found.lost_s >= 1.0
    assert any(name.startswith("python") for name in found.busiest)
    last = loadgen_tests(found)[-1]
    assert last.foreign_cores > MAX_FOREIGN_CORES
    assert last.round >= FEWEST_ROUNDS


def test_images_are_answered_without_padding_and_of_too_many_the_first_are_sent(
    tiny_images: TinyModel,
    built_images: Callable[[Variant], Path],
    target: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """They are decoded before the clock starts."""
    engine = built_images(name_variant("onnxruntime", "fp32"))
    of_images = partial(measured, "traffic", tiny_images, engine, target)
    record = of_images(scenarios=["single_stream", "offline"])
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
    monkeypatch.setattr(loadgen, "IMAGE_BYTES", 10 * 3 * SIDE * SIDE * 4)
    sent, few, *_ = of_images().calls
    assert sent == Sent(samples=10, of=80)
    for key in ("predictions", "margins"):
        assert getattr(few, key) == pytest.approx(getattr(told, key)[:10], abs=TIE)
    log = (target.with_suffix("") / "none-offline-1/mlperf_log_detail.txt").read_text()
    assert '"key": "qsl_reported_performance_count", "value": 10' in log
