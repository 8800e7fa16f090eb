"""Samples per second and percentiles of a recorded point."""

from typing import Any

import pytest
from tightrope.records.throughput import (
    block_rates,
    call_percentile,
    call_seconds,
    samples_per_second,
)


def point(blocks_s: list[list[list[float]]], batch: int = 4) -> dict[str, Any]:
    return {"batch": batch, "blocks_s": blocks_s}


def test_the_rates_of_the_instances_add_up() -> None:
    two = point([[[0.1, 0.1]] * 4, [[0.2]] * 4])
    assert block_rates(two) == pytest.approx([4 / 0.1 + 4 / 0.2] * 4)
    assert samples_per_second(two).value == pytest.approx(60)


def test_a_block_in_which_no_call_of_an_instance_ended_does_not_count() -> None:
    assert len(block_rates(point([[[0.1], [0.1]], [[0.2], []]]))) == 1


def test_with_fewer_than_four_blocks_there_is_no_rate() -> None:
    assert samples_per_second(point([[[0.1]] * 3])) is None


def test_the_interval_holds_the_spread_of_the_blocks() -> None:
    rate = samples_per_second(point([[[0.1], [0.11], [0.1], [0.12], [0.1], [0.11]]], batch=1))
    assert rate.low < rate.value < rate.high


def test_percentiles_are_over_the_calls_of_all_instances() -> None:
    blocks = [[[0.01] * 10] * 40, [[0.02] * 10] * 40]
    assert len(call_seconds(point(blocks))) == 800
    assert call_percentile(point(blocks), 99) == 0.02
    assert call_percentile(point([[[0.01] * 10] * 4]), 99) is None
