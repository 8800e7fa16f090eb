"""Energy, slow-downs, ratios and rates that are computed of the samples of a record."""

from typing import Any

import pytest
from gpu_states import state
from tightrope.records import idleness, throughput
from tightrope.records.latency import joules_per_call
from tightrope.records.record import blocks_of, call_seconds, time_ratio
from tightrope.statistics import LOAD_SPREAD

BLOCKS = [[0.1] * 2, [0.1] * 3, [0.1] * 5]


def long_block(joules: float | None, calls: int, **changes: Any) -> dict[str, Any]:
    return {"energy_j": joules, "calls": calls, "gpu": state(**changes)}


LONG = long_block(300.0, 100)
STATELESS = {"energy_j": 100.0, "calls": 100, "gpu": None}


def test_joules_of_a_call_are_those_of_the_blocks_that_count() -> None:
    for measured, kept, joules in (
        ({"energy_j": [4.0, 90.0, 10.0]}, [0, 2], 14 / 7),
        ({"energy_j": [4.0, None, 10.0]}, [0, 1, 2], 14 / 7),
        ({"energy_j": [4.0, 90.0, 10.0]}, [], None),
        # a record from before
        ({}, [0, 1], None),
        ({"long_blocks": [LONG]}, [], None),
        # for blocks that are too short
        ({"long_blocks": [LONG, long_block(340.0, 60), long_block(None, 1000)]}, [0], 640 / 160),
        ({"long_blocks": [LONG, long_block(900.0, 100, throttled=["thermal slowdown"])]}, [0], 3.0),
        ({"long_blocks": [LONG, long_block(900.0, 100, other_processes=1)]}, [0], 3.0),
        ({"long_blocks": [long_block(300.0, 100, throttled=["power cap"]), STATELESS]}, [0], 2.0),
    ):
        assert joules_per_call({"blocks_s": BLOCKS, **measured}, kept) == pytest.approx(joules)


def call(ratio: float, *, speed: float = 1.0, foreign: float = 0.0) -> dict[str, Any]:
    return {
        **{"pause_s": 1.0, "block_s": [0.008 * speed, 0.012 * speed, 0.01 * speed]},
        **{"call_s": ratio * 0.01 * speed, "foreign_cores": foreign},
    }


def test_a_call_after_a_pause_is_compared_with_the_block_before_it() -> None:
    found = idleness.slowdown([call(1.5 + 0.01 * step) for step in range(-3, 4)])
    assert found.value == pytest.approx(1.5, rel=0.01)
    assert 1.45 < found.low < found.value < found.high < 1.55
    # in a machine that changes its speed
    assert idleness.slowdown([call(1.2), call(1.2, speed=2)] * 4) == pytest.approx((1.2,) * 3)
    outlier = idleness.slowdown([*(call(1.0 + 0.01 * (step % 3)) for step in range(14)), call(30)])
    assert outlier.value == pytest.approx(1.01, rel=0.01)
    assert outlier.high < 1.05
    assert idleness.slowdown([call(1.3)]) == (pytest.approx(1.3), 0.0, float("inf"))
    assert idleness.undisturbed([call(1.0), call(1.0, foreign=0.5)]) == [call(1.0)]


def test_the_time_of_a_build_and_its_ratio_to_another_one_of_the_same_rounds() -> None:
    rounds = [
        {"blocks_s": [[0.01 * speed] * 3, [0.012 * speed] * 3], "foreign_cores": 0.0}
        for speed in (1.0, 1.1, 1.2, 1.0, 1.1, 1.2, 1.0, 1.1)
    ]
    seconds = call_seconds(blocks_of(rounds, 1))
    assert seconds.low < seconds.value < seconds.high
    assert seconds.value == pytest.approx(0.012 * 1.09, rel=0.02)
    ratio = time_ratio(blocks_of(rounds, 1), blocks_of(rounds, 0))
    assert ratio.value == pytest.approx(1.2)
    # two loads, one of each build
    assert ratio.high / ratio.value == pytest.approx(1 + 1.96 * LOAD_SPREAD * 2**0.5, rel=1e-3)


def point(blocks_s: list[list[list[float]]], batch: int = 4) -> dict[str, Any]:
    return {"batch": batch, "blocks_s": blocks_s}


def test_the_rates_of_the_instances_add_up_in_the_blocks_in_which_each_ended_a_call() -> None:
    two = [[[0.1, 0.1]] * 4 + [[0.3]], [[0.2]] * 4 + [[]]]
    assert throughput.samples_per_second(point(two)) == pytest.approx((60, 60, 60))
    assert throughput.samples_per_second(point([[[0.1]] * 3])) is None
    spread = [[0.1], [0.11], [0.1], [0.12], [0.1], [0.11]]
    rate = throughput.samples_per_second(point([spread], batch=1))
    assert rate.low < rate.value < rate.high
    blocks = [[[0.01] * 10] * 40, [[0.02] * 10] * 40]
    assert throughput.call_percentile(point(blocks), 99) == 0.02
    assert throughput.call_percentile(point(blocks), 50) == pytest.approx(0.01, abs=0.006)
    assert throughput.call_percentile(point([[[0.01] * 10] * 4]), 99) is None
