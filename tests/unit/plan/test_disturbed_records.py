"""Which records of times are measured again when that is asked for."""

import json
from pathlib import Path
from typing import Any

import pytest
from accuracy_records import accuracy_record
from disturbed import facts
from raced import HOST, planted, race_record, race_shape
from study_records import study_record
from tightrope.machine.interference import MAX_FOREIGN_CORES
from tightrope.plan.disturbed_records import is_disturbed
from tightrope.records.latency import LatencyRecord, TimedShape
from tightrope.records.record import Record
from tightrope.records.training import Epoch, SeedRun, TrainingRecord
from tightrope.studies.idleness import FEWEST, Call
from tightrope.studies.throughput import Point
from tightrope.studies.traffic import LoadGenTest, Offline, Rehearsal, Sent, Server

QUICK, SLOW = "cpu-onnxruntime-fp32", "cpu-openvino-fp32"
WHERE: dict[str, Any] = {"model": "m", "host": HOST, "libraries": {}}
IDENTITY = {**WHERE, "variant": QUICK}
MUCH = MAX_FOREIGN_CORES + 0.01
DIED = dict.fromkeys((QUICK, SLOW), "killed by SIGKILL")


def latency(*shapes: tuple[int, int], **changes: Any) -> Record:
    """A record with so many disturbed and quiet pairs at each shape."""
    own = {"threads": 1, "plan": {"pairs": 12, "loads": 1}, "processors": [0]}
    measured = [TimedShape(batch=1, sequence=64, **facts(*one)) for one in shapes]
    return LatencyRecord(**IDENTITY, **own, shapes=measured, **changes)


def race(*disturbed: int, **changes: Any) -> Record:
    """A record with so many disturbed rounds of 24 at each shape."""
    times = planted({QUICK: 0.010, SLOW: 0.010}, 24)
    return race_record([race_shape(times, disturbed=one) for one in disturbed], **changes)


def traffic(*tests: LoadGenTest, scenario: str) -> Record:
    told = Rehearsal(padding="fixed", short_s=0.1, long_s=0.1, samples_per_s=1.0)
    settings = {"scenarios": [scenario], "batch": 4, "p99_bound_s": 0.1}
    return study_record("traffic", [Sent(samples=1, of=1), told, *tests], settings)


def server(cores: float) -> Record:
    known = {"target_per_s": 1.0, "issued_per_s": 1.0, "p99_s": 0.1, "queries": 662, "late": 0}
    known |= {"padding": "fixed", "duration_s": 1.0, "valid": True}
    rates = [Server(**known, round=at, foreign_cores=one) for at, one in ((1, 0.0), (2, cores))]
    return traffic(*rates, scenario="server")


def offline(*cores: float) -> Record:
    sent = {"duration_s": 1.0, "samples": 1, "samples_per_s": 1.0, "batches": 1}
    known = {"padding": "fixed", "valid": True, **sent}
    tests = [Offline(**known, round=at, foreign_cores=one) for at, one in enumerate(cores, start=1)]
    return traffic(*tests, scenario="offline")


def throughput(cores: float) -> Record:
    point = {"instances": 1, "threads": 2, "blocks_s": [[[0.01]] * 10]}
    quiet, busy = Point(**point, batch=1), Point(**point, batch=4, foreign_cores=cores)
    late = Point(**point, batch=8, reason="max_seconds = 1 were over", skipped=True)
    return study_record("throughput", [quiet, busy, late], {"p99_ms": None})


def idleness(quiet: int, disturbed: int) -> Record:
    calls = [Call(1, 1, [0.1], 0.1, one) for one in [0.0] * quiet + [MUCH] * disturbed]
    return study_record("idleness", calls, {"pauses": [0.1, 1], "max_seconds": 120})


def training(*cores: float) -> Record:
    size = {"samples": 1, "steps": 1}
    told = {"seconds": 1.0, "loss": 0.5, "accuracy": 0.5, "accuracy_s": 0.1}
    epochs = [Epoch(**size, **told, foreign_cores=one) for one in cores]
    size |= {"held_out_samples": 1, "micro_batches": 1, "peak_rss_bytes": 1}
    run = SeedRun(seed=0, amp="off", tf32=False, **size, epochs=epochs)
    return TrainingRecord(**WHERE, recipe={}, plan={}, runs=[run], device="cpu", threads=1)


@pytest.mark.parametrize(
    ("name", "record", "expected"),
    [
        # a shape has no number
        *(
            (f"v.{kind}.json", latency(*shapes), expected)
            for kind in ("latency", "activation")
            for shapes, expected in (
                ([(5, 7)], False),
                ([(6, 6)], True),
                ([(0, 12), (12, 0)], True),
                ([(8, 12), (0, 12)], False),
                ([], False),
            )
        ),
        ("v.latency.json", latency(status="failed", reason="too slow"), False),
        # or no winner; where all engines died, that is not run again for it
        ("cpu.race.json", race(14), False),
        ("cpu.race.json", race(15), True),
        ("cpu.race.json", race(0, 20), True),
        ("cpu.race.json", race(24, left_out=DIED), False),
        # other programs ran in a test of traffic, of which enough others must be left
        ("v.traffic.json", server(MAX_FOREIGN_CORES), False),
        ("v.traffic.json", server(MUCH), True),
        ("v.traffic.json", offline(0.0, 0.0, MUCH), True),
        ("v.traffic.json", offline(0.0, 0.9, 0.0, 0.0), False),
        ("v.throughput.json", throughput(MAX_FOREIGN_CORES), False),
        ("v.throughput.json", throughput(MUCH), True),
        ("v.idleness.json", idleness(FEWEST, 9), False),
        ("v.idleness.json", idleness(FEWEST - 1, 1), True),
        ("v.idleness.json", idleness(FEWEST - 1, 0), False),
        # the first epoch is told apart
        ("training.json", training(1.0, 0.0, 1.0), False),
        ("training.json", training(0.0, 1.0, 1.0), True),
        ("v.accuracy.json", accuracy_record(**IDENTITY), False),
    ],
)
def test_a_record_is_disturbed_where_other_load_left_too_little(tmp_path, name, record, expected):
    record.write(tmp_path / name)
    assert is_disturbed(tmp_path / name) is expected


def test_broken_and_other_records_are_left_alone(tmp_path: Path) -> None:
    broken, old = tmp_path / "b.latency.json", tmp_path / "c.latency.json"
    broken.write_text("{")
    latency((12, 0)).write(old)
    old.write_text(json.dumps({**json.loads(old.read_text()), "schema": 3}))
    engine = tmp_path / "engine.json"
    engine.write_text('{"status": "failed"}')
    assert not any(map(is_disturbed, (broken, old, engine)))
