"""Which variants meet the bounds of a goal before the race."""

from pathlib import Path
from typing import Any

import pytest
from disturbed import facts
from raced import HOST
from tightrope.measure.race.candidates import Measured
from tightrope.measure.race.goal import meeting
from tightrope.records.accuracy import AccuracyRecord
from tightrope.records.finalists import Candidate
from tightrope.records.latency import LatencyRecord
from tightrope.statistics import Interval

FAST, SLOW = "cpu-openvino-bf16", "cpu-onnxruntime-fp32"
NONE = {"shape": None, "p99_ms": None, "memory_mb": None, "accuracy_points": None}


def measured(variant: str, seconds: float, mb: float | None, calls: int = 100) -> Measured:
    identity = {"model": "m", "variant": variant, "host": HOST, "libraries": {}}
    latency = LatencyRecord(
        **identity,
        threads=1,
        plan={"pairs": 12, "loads": 1},
        processors=[0],
        peak_rss_bytes=None if mb is None else int(1e6 * mb),
        shapes=[{"batch": 1, "blocks_s": [[seconds] * calls] * 12, **facts(0, 12)}],
    )
    return Measured(Path("engine.json"), latency, AccuracyRecord(**identity), 100)


def met(bounds: dict[str, Any], *, calls: int = 100, verdict: str = "kept") -> list[str]:
    every = {FAST: measured(FAST, 0.002, 900, calls), SLOW: measured(SLOW, 0.004, 300, calls)}
    known = [Candidate(name, Interval(2.0, 1.9, 2.1), verdict) for name in every]
    return [one.variant for one in meeting({**NONE, **bounds}, known, every, 0)]


@pytest.mark.parametrize(
    ("bounds", "variants"),
    [
        ({}, [FAST, SLOW]),
        ({"p99_ms": 3.0}, [FAST]),
        ({"memory_mb": 500}, [SLOW]),
        ({"p99_ms": 3.0, "memory_mb": 500}, []),
    ],
)
def test_those_within_all_bounds_meet_them(bounds: dict[str, Any], variants: list[str]) -> None:
    assert met(bounds) == variants


def test_a_p99_of_too_few_calls_and_accuracy_that_is_not_kept_meet_nothing() -> None:
    assert met({"p99_ms": 100.0}, calls=1) == []
    assert met({}, verdict="undecided") == []
