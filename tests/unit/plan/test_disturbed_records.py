"""Which records of times are measured again when that is asked for."""

import json
from pathlib import Path
from typing import Any

import pytest
from accuracy_records import accuracy_record
from disturbed import facts
from raced import HOST, planted, race_record, race_shape
from tightrope.machine.interference import MAX_FOREIGN_CORES
from tightrope.plan.disturbed_records import is_disturbed
from tightrope.records.idleness import FEWEST, IdlenessRecord
from tightrope.records.latency import LatencyRecord
from tightrope.records.throughput import ThroughputRecord
from tightrope.records.traffic import TrafficRecord
from tightrope.records.training import TrainingRecord

QUICK, SLOW = "cpu-onnxruntime-fp32", "cpu-openvino-fp32"
IDENTITY: dict[str, Any] = {"model": "m", "variant": QUICK, "host": HOST, "libraries": {}}


def latency(path: Path, *shapes: tuple[int, int], **changes: Any) -> Path:
    """A record with so many disturbed and quiet pairs at each shape."""
    record = LatencyRecord(
        **IDENTITY,
        threads=1,
        plan={"pairs": 12, "loads": 1},
        processors=[0],
        shapes=[{"batch": 1, "sequence": 64, **facts(*one)} for one in shapes],
        **changes,
    )
    record.write(path)
    return path


def race(path: Path, *disturbed: int, **changes: Any) -> Path:
    """A record with so many disturbed rounds of 24 at each shape."""
    times = planted({QUICK: 0.010, SLOW: 0.010}, 24)
    race_record([race_shape(times, disturbed=one) for one in disturbed], **changes).write(path)
    return path


@pytest.mark.parametrize("kind", ["latency", "activation"])
@pytest.mark.parametrize(
    ("shapes", "expected"),
    [
        ([(0, 12)], False),
        ([(5, 7)], False),
        ([(6, 6)], True),
        ([(0, 12), (12, 0)], True),
        ([(8, 12), (0, 12)], False),
        ([], False),
    ],
)
def test_a_latency_is_disturbed_where_a_shape_has_no_number(
    tmp_path: Path, kind: str, shapes: list[tuple[int, int]], expected: bool
) -> None:
    assert is_disturbed(latency(tmp_path / f"{QUICK}.{kind}.json", *shapes)) is expected


@pytest.mark.parametrize(
    ("rounds", "expected"), [([0], False), ([14], False), ([15], True), ([0, 20], True)]
)
def test_a_race_is_disturbed_where_a_shape_has_no_winner(
    tmp_path: Path, rounds: list[int], expected: bool
) -> None:
    assert is_disturbed(race(tmp_path / "cpu.race.json", *rounds)) is expected


@pytest.mark.parametrize(
    ("cores", "expected"), [(MAX_FOREIGN_CORES, False), (MAX_FOREIGN_CORES + 0.01, True)]
)
def test_traffic_is_disturbed_where_other_programs_ran_in_a_test(
    tmp_path: Path, cores: float, expected: bool
) -> None:
    rates = [{"foreign_cores": 0.0}, {"foreign_cores": cores}]
    server = [{"name": "fixed", "scenario": "server", "rates": rates}]
    offline = {"name": "fixed", "scenario": "offline", "valid": True}
    rounds = [
        {**offline, "round": number, "foreign_cores": cores if number == 3 else 0.0}
        for number in (1, 2, 3)
    ]
    for tests in (server, rounds):
        plan = {"padding": ["fixed"]}
        record = TrafficRecord(**IDENTITY, threads=1, plan=plan, longest=16, tests=tests)
        record.write(tmp_path / "v.traffic.json")
        assert is_disturbed(tmp_path / "v.traffic.json") is expected


def test_traffic_with_enough_undisturbed_rounds_is_not_disturbed(tmp_path: Path) -> None:
    offline = {"name": "fixed", "scenario": "offline", "valid": True}
    rounds = [
        {**offline, "round": number, "foreign_cores": 0.9 if number == 2 else 0.0}
        for number in (1, 2, 3, 4)
    ]
    plan = {"padding": ["fixed"]}
    record = TrafficRecord(**IDENTITY, threads=1, plan=plan, longest=16, tests=rounds)
    record.write(tmp_path / "v.traffic.json")
    assert not is_disturbed(tmp_path / "v.traffic.json")


@pytest.mark.parametrize(
    ("cores", "expected"), [(MAX_FOREIGN_CORES, False), (MAX_FOREIGN_CORES + 0.01, True)]
)
def test_throughput_is_disturbed_where_other_programs_ran_in_a_point(
    tmp_path: Path, cores: float, expected: bool
) -> None:
    points = [
        {"batch": 1, "reason": None, "foreign_cores": 0.0},
        {"batch": 4, "reason": None, "foreign_cores": cores},
        {"batch": 8, "reason": "max_seconds = 1 were over", "skipped": True},
    ]
    record = ThroughputRecord(**IDENTITY, plan={}, processors=[0], cores=1, points=points)
    record.write(tmp_path / "v.throughput.json")
    assert is_disturbed(tmp_path / "v.throughput.json") is expected


@pytest.mark.parametrize(
    ("quiet", "disturbed", "expected"),
    [(FEWEST, 9, False), (FEWEST - 1, 1, True), (FEWEST - 1, 0, False)],
)
def test_idleness_is_disturbed_where_other_load_left_too_few_calls_after_a_pause(
    tmp_path: Path, quiet: int, disturbed: int, expected: bool
) -> None:
    cores = [0.0] * quiet + [MAX_FOREIGN_CORES + 0.01] * disturbed
    calls = [{"pause_s": 1, "call_s": 0.1, "block_s": [0.1], "foreign_cores": one} for one in cores]
    own = {"threads": 1, "processors": [0], "shape": {"batch": 1}}
    plan = {"pauses": [0.1, 1], "max_seconds": 120}
    record = IdlenessRecord(**IDENTITY, **own, plan=plan, calls=calls)
    record.write(tmp_path / "v.idleness.json")
    assert is_disturbed(tmp_path / "v.idleness.json") is expected


@pytest.mark.parametrize(
    ("epochs", "expected"), [([1.0, 0.0, 1.0], False), ([0.0, 1.0, 1.0], True)]
)
def test_a_training_is_disturbed_where_it_has_no_epoch_after_the_first(
    tmp_path: Path, epochs: list[float], expected: bool
) -> None:
    run = {"seed": 0, "epochs": [{"foreign_cores": cores} for cores in epochs]}
    where = {"host": HOST, "libraries": {}, "device": "cpu", "threads": 1}
    record = TrainingRecord(model="m", recipe={}, plan={}, runs=[run], **where)
    record.write(tmp_path / "training.json")
    assert is_disturbed(tmp_path / "training.json") is expected


def test_a_race_whose_engines_all_died_is_not_run_again_for_that(tmp_path: Path) -> None:
    died = dict.fromkeys((QUICK, SLOW), "killed by SIGKILL")
    assert not is_disturbed(race(tmp_path / "cpu.race.json", 24, left_out=died))


def test_failed_broken_and_other_records_are_left_alone(tmp_path: Path) -> None:
    failed = latency(tmp_path / "a.latency.json", status="failed", reason="too slow")
    broken = tmp_path / "b.latency.json"
    broken.write_text("{")
    old = latency(tmp_path / "c.latency.json", (12, 0))
    old.write_text(json.dumps({**json.loads(old.read_text()), "schema": 3}))
    accuracy = tmp_path / "d.accuracy.json"
    accuracy_record(**IDENTITY).write(accuracy)
    engine = tmp_path / "engine.json"
    engine.write_text('{"status": "failed"}')
    assert not any(map(is_disturbed, (failed, broken, old, accuracy, engine)))
