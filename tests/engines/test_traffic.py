"""LoadGen's traffic on engines of the tiny model, good ones and broken ones."""

import json
import math
import multiprocessing
import os
import re
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
from tightrope.measure.accuracy import measure_accuracy
from tightrope.measure.run import TimingSettings
from tightrope.measure.traffic import measure_traffic
from tightrope.measure.traffic_loadgen import read_log
from tightrope.measure.traffic_padding import bucket_edges
from tightrope.records.accuracy import AccuracyRecord
from tightrope.records.traffic import FEWEST_ROUNDS, TrafficRecord
from tightrope.summary.traffic import TIE
from tightrope.variants import Variant
from tiny_model import (
    EXECUTION,
    LIMITS,
    LONGEST,
    TinyModel,
    artifacts_of,
    build_variant,
    evaluation_rows,
    name_variant,
)

Build = Callable[[Variant], Path]
Spoil = Callable[..., None]

SCENARIOS, PADDINGS = ("single_stream", "offline", "server"), ("fixed", "longest", "bucketed")
PLAN = {
    "scenarios": list(SCENARIOS),
    "padding": list(PADDINGS),
    "batch": 4,
    "buckets": 3,
    "seconds": 0.2,
    # so long that other load on the machine does not decide
    "p99_bound_s": 2.0,
}
BRIEF = {"scenarios": ["offline"], "padding": ["fixed"]}
LIBRARIES = {"onnxruntime": "1", "mlcommons-loadgen": "2"}
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
        execution=replace(EXECUTION, limits=limits, libraries=LIBRARIES),
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


def rounds_of(record: TrafficRecord, scenario: str) -> list[list[str]]:
    """The paddings of each round, in the order in which they were measured."""
    rounds: dict[int, list[str]] = {}
    for test in record.tests:
        if test["scenario"] == scenario:
            rounds.setdefault(test["round"], []).append(test["name"])
    return [rounds[number] for number in sorted(rounds)]


def changed_apart_from_ties(before: dict[str, Any], after: dict[str, Any]) -> list[int]:
    kept = zip(before["predictions"], after["predictions"], before["margins"], strict=True)
    return [
        place for place, (one, other, margin) in enumerate(kept) if one != other and margin > TIE
    ]


def from_loadgens_summary(target: Path, name: str, label: str) -> float:
    """The number that LoadGen wrote for people to read, not the one in its detailed log."""
    text = (target.with_suffix("") / name / "mlperf_log_summary.txt").read_text()
    found = re.search(rf"^{re.escape(label)}\s*: (\S+)$", text, re.MULTILINE)
    assert found, text
    return float(found[1])


@pytest.fixture(scope="module")
def engine(built: Build) -> Path:
    return built(name_variant("onnxruntime", "fp32"))


@pytest.fixture(scope="module")
def target(tiny: TinyModel, engine: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The record of all scenarios and paddings."""
    path = tmp_path_factory.mktemp("traffic") / "reports" / "v.traffic.json"
    measure(tiny, engine, path)
    return path


@pytest.fixture
def record(target: Path) -> TrafficRecord:
    return TrafficRecord.read(target)


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


def test_paddings_alternate_in_rounds_with_another_one_first_each_time(
    record: TrafficRecord,
) -> None:
    assert (record.status, record.reason, record.transient) == ("ok", None, None)
    assert set(measured_in(record)) == {
        (padding, scenario) for padding in PADDINGS for scenario in SCENARIOS
    }
    for scenario in ("single_stream", "offline"):
        rounds = rounds_of(record, scenario)
        assert len(rounds) >= FEWEST_ROUNDS
        assert all(sorted(one) == sorted(PADDINGS) for one in rounds)
        assert {one[0] for one in rounds} == set(PADDINGS)
        in_order = [test["round"] for test in record.tests if test["scenario"] == scenario]
        assert in_order == sorted(in_order)


def test_the_record_says_what_was_measured_with_what(
    record: TrafficRecord, tiny: TinyModel, engine: Path
) -> None:
    lengths = [len(row["input_ids"]) for row in evaluation_rows(tiny)]
    assert record.lengths == lengths
    assert record.edges == bucket_edges(lengths, 3)
    assert (record.plan, record.longest, record.threads) == (PLAN, LONGEST, 1)
    assert record.libraries == LIBRARIES
    assert record.engine_sha256 == sha256(engine)
    assert record.data_sha256 == sha256(tiny.split("evaluation"))


@pytest.mark.parametrize("padding", PADDINGS)
def test_percentiles_rise_and_offline_answers_every_sample(
    record: TrafficRecord, padding: str
) -> None:
    tests = measured_in(record)
    single, offline = tests[padding, "single_stream"], tests[padding, "offline"]
    assert single["valid"] is True and single["queries"] >= 64
    assert 0 < single["p50_s"] <= single["p90_s"] <= single["p99_s"]
    assert offline["valid"] is True and offline["samples_per_s"] > 0
    assert offline["samples"] % 4 == 0 or offline["samples"] >= len(record.lengths)
    assert offline["samples"] / 4 <= offline["batches"] <= offline["samples"]
    mean = sum(record.lengths) / len(record.lengths)
    assert offline["tokens"] / offline["samples"] == pytest.approx(mean, rel=0.5)


def test_padding_is_that_of_the_kind_of_padding(record: TrafficRecord) -> None:
    every = [test for test in record.tests if test["scenario"] == "offline"]
    # the same samples once or several times have the same mean of tokens
    means = {test["tokens"] / test["samples"] for test in every}
    assert max(means) == pytest.approx(min(means))
    offline = {padding: measured_in(record)[padding, "offline"] for padding in PADDINGS}
    fixed, bucketed = offline["fixed"], offline["bucketed"]
    assert fixed["tokens"] + fixed["padded_tokens"] == LONGEST * fixed["samples"]
    share = {name: test["padded_tokens"] / test["samples"] for name, test in offline.items()}
    assert share["bucketed"] < share["longest"] < share["fixed"]
    needed = sum(min(e for e in record.edges if e >= n) - n for n in record.lengths)
    mean = needed / len(record.lengths)
    assert bucketed["padded_tokens"] / bucketed["samples"] == pytest.approx(mean, rel=0.5)


@pytest.mark.parametrize("padding", PADDINGS)
def test_the_server_has_the_highest_rate_within_the_bound(
    record: TrafficRecord, padding: str
) -> None:
    server = measured_in(record)[padding, "server"]
    valid = [rate for rate in server["rates"] if rate["valid"]]
    assert 1 <= len(valid) <= len(server["rates"]) <= 9
    assert all(rate["p99_s"] <= PLAN["p99_bound_s"] for rate in valid)
    best = max(valid, key=lambda rate: rate["target_per_s"])
    assert server["highest_per_s"] == best["target_per_s"]
    assert server["issued_per_s"] == best["issued_per_s"]
    assert server["reason"] is None


@pytest.mark.parametrize("padding", PADDINGS)
def test_numbers_are_those_that_loadgen_wrote_for_people(target: Path, padding: str) -> None:
    tests = measured_in(TrafficRecord.read(target))
    last = tests[padding, "offline"]["round"]
    rate = from_loadgens_summary(target, f"{padding}-offline-{last}", "Samples per second")
    assert tests[padding, "offline"]["samples_per_s"] == pytest.approx(rate, rel=1e-4)
    label = "90.00 percentile latency (ns)"
    last = tests[padding, "single_stream"]["round"]
    late_ns = from_loadgens_summary(target, f"{padding}-single_stream-{last}", label)
    assert tests[padding, "single_stream"]["p90_s"] == pytest.approx(late_ns / 1e9)
    for test in tests[padding, "server"]["rates"]:
        name = f"{padding}-server-{test['target_per_s']:g}"
        late_ns = from_loadgens_summary(target, name, "99.00 percentile latency (ns)")
        assert test["p99_s"] == pytest.approx(late_ns / 1e9)


def test_predictions_of_all_paddings_are_those_of_fixed_apart_from_ties(
    record: TrafficRecord,
) -> None:
    assert set(record.answers) == set(PADDINGS)
    for answers in record.answers.values():
        assert len(answers["predictions"]) == len(answers["margins"]) == len(record.lengths)
        assert set(answers["predictions"]) == {0, 1, 2}
        assert changed_apart_from_ties(record.answers["fixed"], answers) == []
        assert answers["margins"] == pytest.approx(record.answers["fixed"]["margins"], abs=1e-3)


def test_predictions_are_those_of_the_accuracy_record(
    record: TrafficRecord, tiny: TinyModel, engine: Path, tmp_path: Path
) -> None:
    options = {"max_sequence": LONGEST, "max_seconds": 60, "execution": EXECUTION}
    path = tmp_path / "v.accuracy.json"
    inputs = artifacts_of(tiny, engine)
    measure_accuracy(inputs, path, model="tiny", variant="cpu-onnxruntime-fp32", **options)
    alone = AccuracyRecord.read(path)
    answers = {"predictions": alone.predictions, "margins": alone.margins}
    assert changed_apart_from_ties(answers, record.answers["bucketed"]) == []


def test_loadgens_logs_lie_beside_the_record_with_the_hashes_in_it(target: Path) -> None:
    record = TrafficRecord.read(target)
    assert record.logs == logs_beside(target)
    rates = {(p, f"{t['target_per_s']:g}") for p in PADDINGS for t in rates_of(record, p)}
    names = {f"{padding}-server-{rate}" for padding, rate in rates}
    names |= {
        f"{padding}-{scenario}-{number}"
        for scenario in SCENARIOS[:2]
        for number, paddings in enumerate(rounds_of(record, scenario), start=1)
        for padding in paddings
    }
    assert {Path(path).parent.name for path in record.logs} == names
    for name in names:
        assert f"v.traffic/{name}/mlperf_log_summary.txt" in record.logs
        assert f"v.traffic/{name}/mlperf_log_detail.txt" in record.logs


def rates_of(record: TrafficRecord, padding: str) -> list[dict[str, Any]]:
    return measured_in(record)[padding, "server"]["rates"]


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


def test_an_engine_with_buckets_gives_the_same_answers_with_every_padding(
    tiny: TinyModel, built: Build, record: TrafficRecord, tmp_path: Path
) -> None:
    path = built(name_variant("openvino", "fp32"))
    own = measure(tiny, path, tmp_path / "v.traffic.json", scenarios=["offline"])
    assert own.status == "ok", own.reason
    for padding in PADDINGS:
        assert changed_apart_from_ties(record.answers["fixed"], own.answers[padding]) == []


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


def test_the_log_tells_which_test_runs_and_how_far_the_job_is(
    tiny: TinyModel, engine: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    measure(tiny, engine, tmp_path / "v.traffic.json", padding=["fixed"])
    log = capfd.readouterr().err
    for what in ("answering", "single stream", "offline", "server"):
        assert re.search(rf"{what}, fixed:\s+\d+%\|", log), what
    percents = [
        int(share) for share in re.findall(r"(?:stream|offline|server), \w+:\s+(\d+)%", log)
    ]
    assert len(set(percents)) > 3


def test_a_disturbed_test_is_repeated_while_time_may_be_lost(
    tiny: TinyModel, engine: Path, tmp_path: Path
) -> None:
    with busy_child(PROCESSORS[-1]):
        found = measure(tiny, engine, tmp_path / "v.traffic.json", quiet_seconds=1.0, **BRIEF)
    assert found.lost_s >= 1.0
    assert any(name.startswith("python") for name in found.busiest)
    assert measured_in(found)["fixed", "offline"]["foreign_cores"] > MAX_FOREIGN_CORES
    assert len(rounds_of(found, "offline")) >= FEWEST_ROUNDS
