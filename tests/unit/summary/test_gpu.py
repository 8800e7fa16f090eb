"""The GPU while a shape was timed, and the throughput on several of its streams."""

from typing import Any

import pytest
from disturbed import QUIET
from gpu_states import STATE, state
from latency_records import latency_shape
from msgspec.structs import astuple, replace
from tightrope.decide.result import Gpu
from tightrope.statistics import trimmed_mean
from tightrope.summary.results import gpu_entry, streams_entry


def entry(*states: Any, **fields: Any) -> Any:
    return gpu_entry(latency_shape([], gpu=list(states), **fields))


def test_it_has_medians_extremes_and_all_reasons() -> None:
    found = entry(
        state(power_w=300.0, throttled=["power cap"]),
        state(sm_clock_mhz=1410, temperature_c=74, throttled=["thermal slowdown", "power cap"]),
        None,
        state(other_processes=2, memory_bytes=4 * 10**9),
        pairs=[replace(QUIET, sm_clocks_mhz=[1980, other]) for other in (1290, 1310)],
    )
    assert found == Gpu(
        sm_clock_mhz=1980,
        lowest_sm_clock_mhz=1410,
        baseline_sm_clock_mhz=1300.0,
        memory_clock_mhz=2619,
        power_w=400.0,
        temperature_c=74,
        throttled=["power cap", "thermal slowdown"],
        clocks_locked=None,
        other_processes=2,
        memory_bytes=4 * 10**9,
    )
    # without a GPU there is nothing
    assert entry() is entry(None, None) is None
    # what NVML does not report is unknown
    found = entry(state(**dict.fromkeys(STATE)))
    assert found is not None and set(astuple(found)) == {None}
    # power is that after the long blocks where there are some
    blocks = [{"calls": 1, "gpu": state(power_w=watts)} for watts in (500.0, 600.0)]
    assert entry(state(), long_blocks=blocks).power_w == 550.0
    assert entry(state(), long_blocks=[{"calls": 1}]).power_w == 400.0


@pytest.mark.parametrize(
    ("changes", "locked"),
    [
        ([{}, {}], None),
        ([{}, {"sm_clock_mhz": 1965}], False),
        ([{}, {"sm_clock_mhz": 1965, "throttled": ["power cap"]}], None),
        ([{"application_clocks": True}, {"application_clocks": True}], True),
        ([{"application_clocks": True}, {"sm_clock_mhz": 1965}], False),
        ([{"application_clocks": None}, {"sm_clock_mhz": None}], None),
    ],
)
def test_clocks_are_locked_as_far_as_it_can_be_told(changes: Any, locked: bool | None) -> None:
    assert entry(*(state(**one) for one in changes)).clocks_locked is locked


def blocks(streams: int, calls: list[int], **changes: Any) -> dict[str, Any]:
    each = {"seconds": [0.2] * len(calls), "gpu": [None] * len(calls)}
    return {"streams": streams, "calls": calls, **each, **changes}


def streamed(*streams: dict[str, Any]) -> Any:
    return latency_shape([], batch=4, streams=list(streams))


def test_throughput_counts_samples_and_has_the_interval_of_its_blocks() -> None:
    calls = [100, 101, 99, 100, 102]
    found = streams_entry(streamed(blocks(2, calls), blocks(4, [90] * 5)))
    first, second = found.rates
    expected = trimmed_mean([4 * one / 0.2 for one in calls])
    assert (first.throughput_per_s, first.low, first.high) == pytest.approx(expected)
    assert (first.streams, first.blocks, first.reason) == (2, 5, None)
    assert second.throughput_per_s == pytest.approx(1800)
    assert found.best == 2
    # one block has no interval and a failure keeps its reason
    failed = blocks(8, [], reason="out of memory")
    one, other = streams_entry(streamed(blocks(2, [100]), failed)).rates
    assert (one.throughput_per_s, one.low, one.high) == (pytest.approx(2000), None, None)
    assert (other.throughput_per_s, other.reason) == (None, "out of memory")
    # where none were asked for there is no entry
    assert streams_entry(latency_shape([])) is streams_entry(streamed()) is None


def test_a_block_of_a_gpu_that_was_shared_or_slowed_down_does_not_count() -> None:
    states = [state(), state(computing_processes=1), state(throttled=["thermal slowdown"]), state()]
    found = streams_entry(streamed(blocks(2, [100, 10, 10, 100], gpu=states)))
    assert found.rates[0].blocks == 2
    assert found.rates[0].throughput_per_s == pytest.approx(2000)
    none = streams_entry(streamed(blocks(2, [10], gpu=[state(computing_processes=1)])))
    assert none.rates[0].throughput_per_s is None
    assert none.rates[0].reason == "the GPU was slowed down or shared in each block"
    assert none.best is None
