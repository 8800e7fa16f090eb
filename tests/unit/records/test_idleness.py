"""Ratios of first calls to the blocks before their pauses."""

from typing import Any

import pytest
from tightrope.records.idleness import slowdown, undisturbed


def call(ratio: float, *, speed: float = 1.0, foreign: float = 0.0) -> dict[str, Any]:
    return {
        **{"pause_s": 1.0, "paused_s": 1.01, "block_s": [0.01 * speed, 0.012 * speed, 0.01]},
        **{"call_s": ratio * 0.01 * speed, "foreign_cores": foreign},
    }


def test_each_call_is_compared_with_the_block_before_its_pause() -> None:
    found = slowdown([call(1.5 + 0.01 * step) for step in range(-3, 4)])
    assert found.value == pytest.approx(1.5, rel=0.01)
    assert 1.45 < found.low < found.value < found.high < 1.55


def test_a_machine_that_changes_its_speed_changes_no_ratio() -> None:
    calls = [{**call(1.2), "block_s": [0.01] * 3}, {**call(1.2, speed=2), "block_s": [0.02] * 3}]
    found = slowdown(calls * 4)
    assert found == pytest.approx((1.2, 1.2, 1.2))


def test_one_outlier_moves_neither_the_ratio_nor_its_interval_far() -> None:
    found = slowdown([*(call(1.0 + 0.01 * (step % 3)) for step in range(14)), call(30.0)])
    assert found.value == pytest.approx(1.01, rel=0.01)
    assert found.high < 1.05


def test_one_call_has_no_interval() -> None:
    found = slowdown([call(1.3)])
    assert (found.value, found.low, found.high) == (pytest.approx(1.3), 0.0, float("inf"))


def test_a_call_in_whose_pause_other_programs_ran_does_not_count() -> None:
    quiet, loud = call(1.0), call(1.0, foreign=0.5)
    assert undisturbed([quiet, loud]) == [quiet]
