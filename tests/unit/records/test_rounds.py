"""Ratios of the times of builds, from the rounds of all."""

import pytest
from tightrope.records.rounds import blocks_of, call_seconds, time_ratio
from tightrope.statistics import LOAD_SPREAD

ROUNDS = [
    {"blocks_s": [[0.01 * speed] * 3, [0.012 * speed] * 3], "foreign_cores": 0.0}
    for speed in (1.0, 1.1, 1.2, 1.0, 1.1, 1.2, 1.0, 1.1)
]


def test_the_seconds_of_a_build_have_the_interval_of_its_blocks() -> None:
    found = call_seconds(blocks_of(ROUNDS, 1))
    assert found.low < found.value < found.high
    assert found.value == pytest.approx(0.012 * 1.09, rel=0.02)


def test_a_machine_that_changes_its_speed_leaves_the_variation_between_loads() -> None:
    found = time_ratio(blocks_of(ROUNDS, 1), blocks_of(ROUNDS, 0))
    assert found.value == pytest.approx(1.2)
    # two loads, one of each build
    half = 1.96 * LOAD_SPREAD * 2**0.5
    assert found.high / found.value == pytest.approx(1 + half, rel=1e-3)
