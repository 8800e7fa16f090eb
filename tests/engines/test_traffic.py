"""LoadGen's traffic on broken and slow engines; on a good one: workflow/test_whole_traffic.py."""

import json
import math
import multiprocessing
import os
import signal
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from busy import PROCESSORS, busy_child
from tightrope.artifacts.files import sha256
from tightrope.engines.load import load_engine
from tightrope.errors import TightropeError
from tightrope.inputs.arrays import Arrays
from tightrope.jobs.child import Limits
from tightrope.machine.interference import MAX_FOREIGN_CORES
from tightrope.measure.run import TimingSettings
from tightrope.measure.traffic import measure_traffic
from tightrope.measure.traffic_loadgen import read_log
from tightrope.records.traffic import FEWEST_ROUNDS, TrafficRecord
from tightrope.variants import Variant
from tiny_model import (
    EXECUTION,
    LIMITS,
    LONGEST,
    TinyModel,
    artifacts_of,
    build_variant,
    name_variant,
)

Build = Callable[[Variant], Path]
Spoil = Callable[..., None]

PLAN = {
    "scenarios": ["single_stream", "offline", "server"],
    "padding": ["fixed", "longest", "bucketed"],
    "batch": 4,
    "buckets": 3,
    "seconds": 0.2,
    # so long that other load on the machine does not decide
    "p99_bound_s": 2.0,
}
BRIEF = {"scenarios": ["offline"], "padding": ["fixed"]}
SLOW_S = 0.02


def measure(
    tiny: TinyModel,
    engine: Path,
    target: Path,
    limits: Limits = LIMITS,
    quiet_seconds: float = 0.0,
    **plan: Any,
) -> TrafficRecord:
    settings = TimingSettings(
        max_sequence=LONGEST,
        plan={**PLAN, **plan},
        quiet_seconds=quiet_seconds,
        terminal=sys.__stderr__,
        execution=replace(EXECUTION, limits=limits),
    )
    measure_traffic(
        artifacts_of(tiny, engine),
        target,
        settings,
        model="tiny",
        variant=json.loads(engine.read_text())["variant"],
    )
    return TrafficRecord.read(target)


def logs_beside(target: Path) -> dict[str, str]:
    """sha256 of every file in the folder of the record's logs, by path from the record."""
    folder = target.with_suffix("")
    files = [file for file in folder.rglob("*") if file.is_file()]
    return {str(file.relative_to(target.parent)): sha256(file) for file in files}


def measured_in(record: TrafficRecord) -> dict[tuple[str, str], dict[str, Any]]:
    """The last test of each padding and scenario."""
    return {(test["name"], test["scenario"]): test for test in record.tests}


@pytest.fixture(scope="module")
def engine(built: Build) -> Path:
    return built(name_variant("onnxruntime", "fp32"))


@pytest.fixture
def spoil(monkeypatch: pytest.MonkeyPatch) -> Spoil:
    """Let the real engine do something else with its outputs, from when `begun` says so."""

    def spoilt(act: Callable[[np.ndarray], Any], begun: Callable[[], bool] = lambda: True) -> None:
        def load(path: Path, *, threads: int) -> tuple[Any, dict[str, float]]:
            run, seconds = load_engine(path, threads=threads)

            def harmed(inputs: Arrays) -> Any:
                logits = run(inputs)
                return act(logits) if begun() else logits

            return harmed, seconds

        monkeypatch.setattr("tightrope.measure.traffic.load_engine", load)

    return spoilt


def asked_by_loadgen(target: Path, scenario: str) -> Callable[[], bool]:
    """Whether a test of the scenario has begun, so that no rehearsal is spoilt."""
    folder = target.with_suffix("")
    return lambda: any(folder.glob(f"*-{scenario}*"))


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


def test_logs_of_before_are_replaced(tiny: TinyModel, engine: Path, tmp_path: Path) -> None:
    target = tmp_path / "v.traffic.json"
    stale = tmp_path / "v.traffic" / "bucketed-offline-1" / "mlperf_log_summary.txt"
    stale.parent.mkdir(parents=True)
    stale.write_text("of another time")
    other = tmp_path / "w.traffic" / "kept.txt"
    other.parent.mkdir()
    other.write_text("of another variant")
    measure(tiny, engine, target, scenarios=["single_stream", "offline"], padding=["fixed"])
    before = logs_beside(target)
    record = measure(tiny, engine, target, **BRIEF)
    assert {scenario_of(path) for path in record.logs} == {"fixed-offline"}
    assert record.logs == logs_beside(target)
    assert {scenario_of(path) for path in before} == {"fixed-offline", "fixed-single_stream"}
    detail = "v.traffic/fixed-offline-1/mlperf_log_detail.txt"
    assert before[detail] != record.logs[detail]
    assert other.read_text() == "of another variant"


def test_no_time_is_less_than_what_the_engine_takes(
    tiny: TinyModel, engine: Path, tmp_path: Path, spoil: Spoil
) -> None:
    spoil(is_slow)
    plan = {"scenarios": ["single_stream", "offline"], "padding": ["longest"]}
    tests = measured_in(measure(tiny, engine, tmp_path / "v.traffic.json", **plan))
    single, offline = tests["longest", "single_stream"], tests["longest", "offline"]
    assert single["p50_s"] >= SLOW_S
    assert offline["samples_per_s"] <= 4 / SLOW_S
    assert offline["batches"] == math.ceil(offline["samples"] / 4)


# logits of another shape are seen where those that are not numbers are:
# tests/unit/measure/test_logits.py
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
    tiny: TinyModel,
    engine: Path,
    tmp_path: Path,
    spoil: Spoil,
    act: Callable[[np.ndarray], Any],
    reason: str,
    transient: bool,
    scenario: str | None,
) -> None:
    target = tmp_path / "v.traffic.json"
    spoil(act, asked_by_loadgen(target, scenario) if scenario else lambda: True)
    record = measure(tiny, engine, target, scenarios=[scenario or "offline"], padding=["longest"])
    assert record.status == "failed"
    assert reason in record.reason
    assert "\n" not in record.reason
    assert record.transient is transient
    assert (record.tests, record.answers) == ([], {})
    assert any(scenario in path for path in record.logs) if scenario else record.logs == {}
    assert record.logs == logs_beside(target)
    assert multiprocessing.active_children() == []


def test_an_engine_that_hangs_is_killed_at_its_limit(
    tiny: TinyModel, engine: Path, tmp_path: Path, spoil: Spoil
) -> None:
    target = tmp_path / "v.traffic.json"
    spoil(hangs)
    limits = Limits(memory_bytes=8e9, seconds=3)
    record = measure(tiny, engine, target, limits, scenarios=["server"], padding=["longest"])
    assert (record.status, record.transient) == ("failed", True)
    assert record.reason.startswith("killed after 3 s, the limit of this job")
    assert multiprocessing.active_children() == []


def test_a_transient_failure_that_is_not_the_last_leaves_no_record(
    tiny: TinyModel, engine: Path, tmp_path: Path, spoil: Spoil
) -> None:
    target = tmp_path / "v.traffic.json"
    target.write_text("of another time")
    spoil(is_killed)
    limits = Limits(memory_bytes=8e9, seconds=60, last_attempt=False)
    with pytest.raises(TightropeError, match=r"cpu-onnxruntime-fp32: killed by SIGKILL .*another"):
        measure(tiny, engine, target, limits, **BRIEF)
    assert not target.exists()


def test_a_final_failure_is_recorded_at_the_first_attempt(
    tiny: TinyModel, engine: Path, tmp_path: Path, spoil: Spoil
) -> None:
    spoil(raises)
    limits = Limits(memory_bytes=8e9, seconds=60, last_attempt=False)
    record = measure(tiny, engine, tmp_path / "v.traffic.json", limits, **BRIEF)
    assert (record.status, record.reason) == ("failed", "RuntimeError: the kernel")


def test_an_engine_that_was_not_built_is_a_failed_record(tiny: TinyModel, tmp_path: Path) -> None:
    variant = name_variant("onnxruntime", "int8")
    path = build_variant(tiny, variant, tmp_path / "int8/engine.json", source=tiny.simplified)
    target = tmp_path / "v.traffic.json"
    stale = tmp_path / "v.traffic" / "stale.txt"
    stale.parent.mkdir()
    stale.write_text("of another time")
    record = measure(tiny, path, target)
    assert record.status == "failed"
    assert record.reason == "not built: ran in fp32: no matrix product ran in int8"
    assert (record.tests, record.logs, logs_beside(target)) == ([], {}, {})


def test_a_bound_that_one_sample_alone_breaks_has_no_rate_and_none_is_tried(
    tiny: TinyModel, engine: Path, tmp_path: Path
) -> None:
    target = tmp_path / "v.traffic.json"
    record = measure(
        tiny, engine, target, scenarios=["server"], padding=["longest"], p99_bound_s=1e-6
    )
    server = measured_in(record)["longest", "server"]
    assert record.status == "ok"
    assert (server["highest_per_s"], server["issued_per_s"]) == (None, None)
    assert server["rates"] == []
    assert server["reason"].startswith("one long sample alone takes")
    assert server["reason"].endswith("the bound of p99 is 1e-06 s")


def test_a_log_without_a_result_is_an_error_that_names_it(tmp_path: Path) -> None:
    log = tmp_path / "mlperf_log_detail.txt"
    log.write_text(':::MLLOG {"key": "loadgen_version", "value": "6"}\n')
    for path in (log, tmp_path / "none.txt"):
        with pytest.raises(RuntimeError, match=f"{path.name}: LoadGen wrote no result"):
            read_log(path)


def test_a_rehearsal_that_was_hit_by_other_load_does_not_make_the_test_invalid(
    tiny: TinyModel, engine: Path, tmp_path: Path, spoil: Spoil
) -> None:
    target = tmp_path / "v.traffic.json"
    begun = asked_by_loadgen(target, "")
    spoil(is_slow, lambda: not begun())
    record = measure(tiny, engine, target, scenarios=["offline"], padding=["longest"])
    assert measured_in(record)["longest", "offline"]["valid"] is True


def test_a_disturbed_test_is_repeated_while_time_may_be_lost(
    tiny: TinyModel, engine: Path, tmp_path: Path
) -> None:
    with busy_child(PROCESSORS[-1]):
        found = measure(tiny, engine, tmp_path / "v.traffic.json", quiet_seconds=1.0, **BRIEF)
    assert found.lost_s >= 1.0
    assert any(name.startswith("python") for name in found.busiest)
    assert measured_in(found)["fixed", "offline"]["foreign_cores"] > MAX_FOREIGN_CORES
    assert len({test["round"] for test in found.tests}) >= FEWEST_ROUNDS
