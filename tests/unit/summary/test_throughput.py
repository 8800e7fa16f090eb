"""What summary.json says of throughput."""

from typing import Any

import msgspec
import pytest
from raced import HOST
from tightrope.machine.interference import MAX_FOREIGN_CORES
from tightrope.records.throughput import ThroughputRecord
from tightrope.summary.throughput import TOO_SLOW, Throughput, throughput_entry

VARIANT = "cpu-onnxruntime-fp32"
PLAN = {"batches": [1, 4], "p99_ms": None}


def place(instances: int, threads: int, batch: int, **told: Any) -> dict[str, Any]:
    return {"instances": instances, "threads": threads, "batch": batch, **told}


def point(instances, threads, batch, call_s, *, foreign=0.0, calls=9):
    """A point whose blocks differ by a percent, all calls of a block alike."""
    blocks = [[call_s * (1 + 0.01 * (number % 3))] * calls for number in range(10)]
    return {
        **place(instances, threads, batch, skipped=False, reason=None, seconds=2.0),
        **{"blocks_s": [blocks] * instances, "foreign_cores": foreign},
        **dict.fromkeys(("waited_s", "late_s"), [0.0] * instances),
        "peak_rss_bytes": 1000 * instances,
    }


def record(points: list[dict[str, Any]], **changes: Any) -> ThroughputRecord:
    known = {"model": "m", "variant": VARIANT, "host": HOST, "libraries": {}, "plan": PLAN}
    machine = {"processors": [0, 1], "cores": 2, "sequence": 64}
    return ThroughputRecord(**{**known, **machine, "points": points, **changes})


def place_of(point: Any) -> tuple[int, int, int]:
    return point["instances"], point["threads"], point["batch"]


TIMES = {(1, 2, 1): 0.010, (1, 2, 4): 0.030, (2, 1, 1): 0.016, (2, 1, 4): 0.050}
POINTS = [point(*one, seconds) for one, seconds in TIMES.items()]


def test_the_best_point_is_compared_with_one_instance_at_its_own_best_batch() -> None:
    entry = throughput_entry(record(POINTS))
    msgspec.convert(entry, Throughput)
    assert place_of(entry["best"]) == (2, 1, 4) and place_of(entry["single"]) == (1, 2, 4)
    best = entry["best"]
    assert best["samples_per_s"] == pytest.approx(2 * 4 / 0.050, rel=0.02)
    assert best["low"] < best["samples_per_s"] < best["high"]
    assert (best["calls"], best["p99_s"]) == (180, None)
    assert entry["gain"]["ratio"] == pytest.approx(160 / (4 / 0.030), rel=0.02)
    assert entry["gain"]["low"] < entry["gain"]["ratio"] < entry["gain"]["high"]
    assert entry["best_within_bound"] is None, "there is no bound"
    entry = throughput_entry(record([*POINTS[:2], point(2, 1, 4, 0.5)]))
    assert entry["best"] == entry["single"] and entry["gain"] is None
    # no rate is below zero, however wide its interval is
    seconds = [0.001, 0.001, 0.001, 10.0, 10.0, 10.0, 10.0, 10.0, 10.0, 10.0]
    uneven = {**POINTS[0], "blocks_s": [[[one] * 9 for one in seconds]]}
    (found,) = throughput_entry(record([uneven]))["points"]
    assert found["low"] == 0.0 < found["samples_per_s"] < found["high"]


def test_only_a_point_with_a_known_p99_is_within_the_bound() -> None:
    points = [point(1, 2, 1, 0.010, calls=70), point(1, 2, 4, 0.030, calls=70), POINTS[3]]
    entry = throughput_entry(record(points, plan={**PLAN, "p99_ms": 20}))
    assert entry["p99_bound_s"] == 0.02
    assert place_of(entry["best_within_bound"]) == (1, 2, 1)
    assert place_of(entry["best"]) == (2, 1, 4)
    entry = throughput_entry(record(points, plan={**PLAN, "p99_ms": 1000}))
    assert place_of(entry["best_within_bound"]) == (1, 2, 4), "the best has too few calls"


def test_a_disturbed_point_has_no_numbers_unless_they_are_accepted() -> None:
    points = [POINTS[0], point(2, 1, 1, 0.001, foreign=MAX_FOREIGN_CORES + 0.5)]
    own = record(points, busiest={"java": 0.6})
    entry = throughput_entry(own)
    assert place_of(entry["best"]) == (1, 2, 1)
    disturbed = entry["points"][1]
    assert disturbed["samples_per_s"] is None and not disturbed["provisional"]
    assert "used up to 0.6 cores" in disturbed["disturbed"] and "java" in disturbed["disturbed"]
    accepted = throughput_entry(own, accept_disturbed=True)
    assert place_of(accepted["best"]) == (2, 1, 1) and accepted["best"]["provisional"]
    # one without calls is no failure of its own
    blocks = [[[0.01], [], [0.01], [], [], [], [], [], [], []]]
    starved = {**POINTS[0], "blocks_s": blocks, "foreign_cores": MAX_FOREIGN_CORES + 0.5}
    entry = throughput_entry(record([starved]), accept_disturbed=True)
    (found,) = entry["points"]
    assert found["disturbed"] and found["samples_per_s"] is None
    assert (found["reason"], found["provisional"]) == (None, False)


def test_points_without_numbers_keep_their_reasons() -> None:
    slow = {**POINTS[0], "blocks_s": [[[1.0], [], [1.0], [], [], [], [], [], [], []]]}
    points = [
        slow,
        place(2, 1, 1, reason="out of memory", skipped=False),
        place(4, 1, 1, reason="needs 4 cores, there are 2", skipped=True),
    ]
    entry = throughput_entry(record(points))
    assert [(one["reason"], one["skipped"]) for one in entry["points"]] == [
        (TOO_SLOW, False),
        ("out of memory", False),
        ("needs 4 cores, there are 2", True),
    ]
    assert (entry["best"], entry["single"], entry["gain"]) == (None, None, None)
    entry = throughput_entry(record([], status="failed", reason="killed by SIGKILL"))
    msgspec.convert(entry, Throughput)
    told = (entry["status"], entry["reason"], entry["points"])
    assert told == ("failed", "killed by SIGKILL", [])
