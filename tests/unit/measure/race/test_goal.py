"""Which variants race for a goal."""

from pathlib import Path
from typing import Any

import pytest
from accuracy_records import accuracy_record
from disturbed import facts
from raced import HOST
from tightrope.measure.race.candidates import Measured
from tightrope.measure.race.goal import racing_for
from tightrope.records.finalists import Candidate
from tightrope.records.latency import LatencyRecord
from tightrope.statistics import Interval

FAST, SLOW = "cpu-openvino-bf16", "cpu-onnxruntime-fp32"
TIME = {
    "minimize": "time",
    "shape": None,
    "p99_ms": None,
    "memory_mb": None,
    "accuracy_points": None,
}


def measured(
    variant: str, seconds: float, mb: float | None, calls: int = 100, joules: float | None = None
) -> Measured:
    identity = {"model": "m", "variant": variant, "host": HOST, "libraries": {}}
    latency = LatencyRecord(
        **identity,
        threads=1,
        plan={"pairs": 12, "loads": 1},
        processors=[0],
        peak_rss_bytes=None if mb is None else int(1e6 * mb),
        shapes=[
            {
                **{"batch": 1, "blocks_s": [[seconds] * calls] * 12, **facts(0, 12)},
                "energy_j": None if joules is None else [joules * calls] * 12,
            }
        ],
    )
    return Measured(Path("engine.json"), latency, accuracy_record(**identity), 100)


def racing(
    goal: dict[str, Any],
    *,
    calls: int = 100,
    verdict: str = "kept",
    joules: tuple[float | None, float | None] = (1.0, 3.0),
) -> list[str]:
    """Of a fast one that takes 900 MB and a slow one that takes 300 MB."""
    every = {
        FAST: measured(FAST, 0.002, 900, calls, joules[0]),
        SLOW: measured(SLOW, 0.004, 300, calls, joules[1]),
    }
    known = [Candidate(name, Interval(2.0, 1.9, 2.1), verdict) for name in every]
    return [one.variant for one in racing_for({**TIME, **goal}, known, every, 0)]


@pytest.mark.parametrize(
    ("bounds", "variants"),
    [
        ({}, [FAST, SLOW]),
        ({"p99_ms": 3.0}, [FAST]),
        ({"memory_mb": 500}, [SLOW]),
        ({"p99_ms": 3.0, "memory_mb": 500}, []),
    ],
)
def test_for_time_those_within_all_bounds_race(bounds: dict[str, Any], variants: list[str]) -> None:
    assert racing(bounds) == variants


def test_a_p99_of_too_few_calls_and_accuracy_that_is_not_kept_race_for_nothing() -> None:
    assert racing({"p99_ms": 100.0}, calls=1) == []
    assert racing({}, verdict="undecided") == []


@pytest.mark.parametrize(
    ("goal", "variants"),
    [
        ({"minimize": "memory"}, [SLOW]),
        ({"minimize": "memory", "p99_ms": 3.0}, [FAST]),
        ({"minimize": "energy"}, [FAST]),
        ({"minimize": "energy", "memory_mb": 500}, [SLOW]),
        ({"minimize": "energy", "memory_mb": 100}, []),
    ],
)
def test_for_memory_or_energy_the_one_with_the_least_within_all_bounds_races(
    goal: dict[str, Any], variants: list[str]
) -> None:
    assert racing(goal) == variants


def test_for_energy_none_races_whose_energy_is_not_known() -> None:
    assert racing({"minimize": "energy"}, joules=(None, 3.0)) == [SLOW]
    assert racing({"minimize": "energy"}, joules=(None, None)) == []
