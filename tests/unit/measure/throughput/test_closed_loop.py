"""Calls in a window of time."""

import time

import pytest
from busy import wait
from tightrope.measure.throughput.closed_loop import closed_loop


def test_calls_count_in_the_block_in_which_they_end_and_those_outside_do_not() -> None:
    ends: list[float] = []

    def run(seconds: float) -> None:
        wait(seconds)
        ends.append(time.perf_counter())

    start = time.perf_counter() + 0.05
    found = closed_loop(run, 0.01, start=start, seconds=0.2, blocks=4)
    assert len(found) == 4
    inside = [end for end in ends if start <= end < start + 0.2]
    assert ends[0] < start and ends[-1] >= start + 0.2, "calls run before and after the window"
    # the first that ends in the window began before it
    assert sum(map(len, found)) == pytest.approx(len(inside) - 1, abs=1)
    # every moment between the first and the last end is in one call
    total = sum(sum(block) for block in found)
    assert total == pytest.approx(inside[-1] - inside[0], abs=0.002)


def test_a_call_longer_than_a_block_leaves_blocks_empty() -> None:
    start = time.perf_counter()
    found = closed_loop(wait, 0.03, start=start, seconds=0.1, blocks=10)
    assert [] in found and any(found)
