"""From calls and seconds of blocks to the throughput on several streams."""

from typing import Any

import pytest
from gpu_states import state
from tightrope.statistics import trimmed_mean
from tightrope.summary.results import streams_entry


def blocks(streams: int, calls: list[int], **changes: Any) -> dict[str, Any]:
    each = {"seconds": [0.2] * len(calls), "gpu": [None] * len(calls)}
    return {"streams": streams, "reason": None, "calls": calls, **each, **changes}


def shape(*streams: dict[str, Any]) -> dict[str, Any]:
    return {"batch": 4, "streams": list(streams)}


@pytest.mark.parametrize("one", [{"batch": 1}, {"batch": 1, "streams": None}, shape()])
def test_where_none_were_asked_for_there_is_no_entry(one: dict[str, Any]) -> None:
    assert streams_entry(one) is None


def test_throughput_counts_samples_and_has_the_interval_of_its_blocks() -> None:
    calls = [100, 101, 99, 100, 102]
    found = streams_entry(shape(blocks(2, calls), blocks(4, [90] * 5)))
    first, second = found["rates"]
    expected = trimmed_mean([4 * one / 0.2 for one in calls])
    assert (first["throughput_per_s"], first["low"], first["high"]) == pytest.approx(expected)
    assert (first["streams"], first["blocks"], first["reason"]) == (2, 5, None)
    assert second["throughput_per_s"] == pytest.approx(1800)
    assert found["best"] == 2


def test_a_block_of_a_gpu_that_was_shared_or_slowed_down_does_not_count() -> None:
    states = [state(), state(other_processes=1), state(throttled=["thermal slowdown"]), state()]
    found = streams_entry(shape(blocks(2, [100, 10, 10, 100], gpu=states)))
    assert found["rates"][0]["blocks"] == 2
    assert found["rates"][0]["throughput_per_s"] == pytest.approx(2000)
    none = streams_entry(shape(blocks(2, [10], gpu=[state(other_processes=1)])))
    assert none["rates"][0]["throughput_per_s"] is None
    assert none["rates"][0]["reason"] == "the GPU was slowed down or shared in each block"
    assert none["best"] is None


def test_one_block_has_no_interval_and_a_failure_keeps_its_reason() -> None:
    failed = blocks(8, [], reason="out of memory")
    one, other = streams_entry(shape(blocks(2, [100]), failed))["rates"]
    assert (one["throughput_per_s"], one["low"], one["high"]) == (pytest.approx(2000), None, None)
    assert (other["throughput_per_s"], other["reason"]) == (None, "out of memory")
