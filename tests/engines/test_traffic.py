"""LoadGen's traffic on broken and slow engines; on a good one: workflow/test_whole_traffic.py."""

import math
import multiprocessing
import os
import signal
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from busy import PROCESSORS, busy_child
from studies import STUDIES, measured, spoil
from tightrope.artifacts.files import sha256
from tightrope.errors import TightropeError
from tightrope.jobs.child import Limits
from tightrope.machine.interference import MAX_FOREIGN_CORES
from tightrope.studies.loadgen import results
from tightrope.studies.study import StudyRecord
from tightrope.studies.traffic import (
    FEWEST_ROUNDS,
    LoadGenTest,
    Offline,
    Server,
    SingleStream,
    rows,
)
from tightrope.variants import Variant
from tiny_model import LIMITS, TinyModel, build_variant, name_variant

Measure = Callable[..., StudyRecord]
SLOW_S = 0.01
FIRST = replace(LIMITS, seconds=60, last_attempt=False)


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


def logs_beside(target: Path) -> dict[str, str]:
    """sha256 of every file in the folder of the record's logs, by path from the record."""
    folder = target.with_suffix("")
    files = [file for file in folder.rglob("*") if file.is_file()]
    return {str(file.relative_to(target.parent)): sha256(file) for file in files}


def last(record: StudyRecord, kind: type[LoadGenTest]) -> Any:
    """The last test of that kind."""
    return [one for one in record.calls if isinstance(one, kind)][-1]


def logs_in(record: StudyRecord) -> dict[str, str]:
    """The logs of all tests."""
    tests = [one for one in record.calls if isinstance(one, LoadGenTest)]
    return {path: digest for one in tests for path, digest in one.logs.items()}


def asked_by_loadgen(target: Path, scenario: str) -> Callable[[int], bool]:
    """Whether a test of the scenario has begun, so that no rehearsal is spoilt."""
    folder = target.with_suffix("")
    return lambda threads: any(folder.glob(f"*-{scenario}*"))


def raises(_: np.ndarray) -> None:
    raise RuntimeError("the kernel\nis broken")


def exits(_: np.ndarray) -> None:
    sys.exit(7)


def is_killed(_: np.ndarray) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def hangs(_: np.ndarray) -> None:
    time.sleep(600)


def gives_nan(logits: np.ndarray) -> np.ndarray:
    return logits * np.nan


def is_slow(logits: np.ndarray) -> np.ndarray:
    time.sleep(SLOW_S)
    return logits


def scenario_of(log: str) -> str:
    """Padding and scenario in the path of a log."""
    return Path(log).parent.name.rpartition("-")[0]


def test_logs_of_before_are_replaced(measure: Measure, target: Path) -> None:
    stale = target.with_suffix("") / "bucketed-offline-1" / "mlperf_log_summary.txt"
    stale.parent.mkdir(parents=True)
    stale.write_text("of another time")
    other = target.parent / "w.traffic" / "kept.txt"
    other.parent.mkdir()
    other.write_text("of another variant")
    measure(scenarios=["single_stream", "offline"])
    before = logs_beside(target)
    record = measure()
    assert {scenario_of(path) for path in logs_in(record)} == {"fixed-offline"}
    assert logs_in(record) == logs_beside(target)
    assert {scenario_of(path) for path in before} == {"fixed-offline", "fixed-single_stream"}
    detail = "v.traffic/fixed-offline-1/mlperf_log_detail.txt"
    assert before[detail] != logs_in(record)[detail]
    assert other.read_text() == "of another variant"


def test_no_time_is_less_than_what_the_engine_takes(measure: Measure, harm: Any) -> None:
    harm(is_slow)
    record = measure(scenarios=["single_stream", "offline"], padding=["longest"])
    offline = last(record, Offline)
    assert last(record, SingleStream).p50_s >= SLOW_S
    assert offline.samples_per_s <= 4 / SLOW_S
    assert offline.batches == math.ceil(offline.samples / 4)


# logits of another shape are seen where those that are not numbers are:
# tests/unit/measure/test_answers.py
@pytest.mark.parametrize(
    ("act", "reason", "transient", "scenario"),
    [
        (raises, "RuntimeError: the kernel", False, None),
        (exits, "ended with exit code 7 and no answer", True, "server"),
        (is_killed, "killed by SIGKILL (out of memory, or from outside)", True, "offline"),
        (gives_nan, "gives logits that are not numbers", False, "single_stream"),
    ],
)
def test_a_broken_engine_is_a_failed_record_with_the_cause(
    measure: Measure,
    target: Path,
    harm: Any,
    act: Callable[[np.ndarray], Any],
    reason: str,
    transient: bool,
    scenario: str | None,
) -> None:
    if scenario:
        harm(act, asked_by_loadgen(target, scenario))
    else:
        harm(act)
    record = measure(scenarios=[scenario or "offline"], padding=["longest"])
    assert record.status == "failed"
    assert reason in record.reason
    assert "\n" not in record.reason
    assert record.transient is transient
    tests = [one for one in record.calls if isinstance(one, LoadGenTest)]
    assert tests == []
    # those of the test that failed stay
    assert any(scenario in path for path in logs_beside(target)) == bool(scenario)
    assert multiprocessing.active_children() == []


def test_an_engine_that_hangs_is_killed_at_its_limit(measure: Measure, harm: Any) -> None:
    harm(hangs)
    record = measure(limits=Limits(memory_bytes=8e9, seconds=3), scenarios=["server"])
    assert (record.status, record.transient) == ("failed", True)
    assert record.reason.startswith("killed after 3 s, the limit of this job")
    assert multiprocessing.active_children() == []


def test_a_transient_failure_that_is_not_the_last_leaves_no_record_and_a_final_one_does(
    measure: Measure, target: Path, harm: Any
) -> None:
    target.write_text("of another time")
    harm(is_killed)
    with pytest.raises(TightropeError, match=r"cpu-onnxruntime-fp32: killed by SIGKILL .*another"):
        measure(limits=FIRST)
    assert not target.exists()
    harm(raises)
    record = measure(limits=FIRST)
    assert (record.status, record.reason) == ("failed", "RuntimeError: the kernel")


@pytest.fixture(scope="module")
def unbuilt(tiny: TinyModel, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The manifest of an engine that could not be built."""
    path = tmp_path_factory.mktemp("unbuilt") / "int8/engine.json"
    return build_variant(tiny, name_variant("onnxruntime", "int8"), path, source=tiny.simplified)


@pytest.mark.parametrize("study", STUDIES)
def test_an_engine_that_was_not_built_is_a_failed_record_of_each_study(
    study: str, tiny: TinyModel, unbuilt: Path, target: Path
) -> None:
    stale = target.with_suffix("") / "stale.txt"
    stale.parent.mkdir()
    stale.write_text("of another time")
    record = measured(study, tiny, unbuilt, target)
    assert record.status == "failed"
    assert record.reason == "not built: ran in fp32: no matrix product ran in int8"
    if study == "traffic":
        assert (record.calls, logs_beside(target)) == ([], {})


def test_a_bound_that_one_sample_alone_breaks_has_no_rate_and_none_is_tried(
    measure: Measure,
) -> None:
    record = measure(scenarios=["server"], padding=["longest"], p99_bound_s=1e-6)
    assert record.status == "ok"
    assert not [one for one in record.calls if isinstance(one, Server)]
    (row,) = rows(record, False)
    assert row.server_per_s is None
    assert row.reason.startswith("one long sample alone takes")
    assert row.reason.endswith("the bound of p99 is 1e-06 s")


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
    assert last(measure(padding=["longest"]), Offline).valid


def test_a_disturbed_test_is_repeated_while_time_may_be_lost(measure: Measure) -> None:
    with busy_child(PROCESSORS[-1]):
        found = measure(quiet_seconds=1.0)
    assert found.lost_s >= 1.0
    assert any(name.startswith("python") for name in found.busiest)
    assert last(found, Offline).foreign_cores > MAX_FOREIGN_CORES
    assert last(found, Offline).round >= FEWEST_ROUNDS
