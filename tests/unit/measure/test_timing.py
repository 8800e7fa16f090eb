"""Calls in a row, in a window of time, and on streams of a device."""

import gc
import time
from contextlib import nullcontext
from typing import Any

import pytest
from busy import wait
from played_streams import CALL, Program
from tightrope.machine.interference import GpuState
from tightrope.measure import timed_engine

SECONDS = 0.002


def test_calls_are_timed_each_and_the_collector_is_off_meanwhile() -> None:
    for seconds, calls, limit, fewest, most in (
        (0.0, 7, 10.0, 7, 7),
        (0.1, 1, 10.0, 1, 0.1 / SECONDS + 1),
        # the limit beats both, but one call is made
        (60.0, 10**6, 0.05, 1, 0.05 / SECONDS + 1),
        (1.0, 5, 0.0, 1, 1),
    ):
        began = time.perf_counter()
        samples = timed_engine.timed_calls(
            wait, SECONDS, seconds=seconds, calls=calls, limit_seconds=limit
        )
        elapsed = time.perf_counter() - began
        assert fewest <= len(samples) <= most
        assert elapsed >= min(seconds, limit)
        assert min(samples) >= SECONDS
        assert sum(samples) <= elapsed
    # it is left as it was, also when a call fails
    for fails in (False, True):
        seen = []

        def run(_: Any, fails: bool = fails, seen: list[bool] = seen) -> None:
            seen.append(gc.isenabled())
            assert not fails

        with pytest.raises(AssertionError) if fails else nullcontext():
            timed_engine.timed_calls(run, None, seconds=0.0, calls=3, limit_seconds=1.0)
        assert set(seen) == {False} and gc.isenabled()


def test_calls_count_in_the_block_in_which_they_end_and_those_outside_do_not() -> None:
    ends: list[float] = []

    def run(seconds: float) -> None:
        wait(seconds)
        ends.append(time.perf_counter())

    start = time.perf_counter() + 0.05
    found = timed_engine.closed_loop(run, 0.01, start=start, seconds=0.2, blocks=4)
    assert len(found) == 4
    inside = [end for end in ends if start <= end < start + 0.2]
    assert ends[0] < start and ends[-1] >= start + 0.2, "calls run before and after the window"
    # the first that ends in the window began before it
    assert sum(map(len, found)) == pytest.approx(len(inside) - 1, abs=1)
    # each call is timed from the end of the one before
    assert min(min(block) for block in found if block) >= 0.01
    assert sum(map(sum, found)) <= 0.2
    # a call longer than a block leaves blocks empty
    slow = timed_engine.closed_loop(wait, 0.03, start=time.perf_counter(), seconds=0.1, blocks=10)
    assert [] in slow and any(slow)


def test_each_stream_gets_its_next_call_when_its_last_one_has_ended() -> None:
    in_flight: list[int] = []

    class Noting(Program):
        def wait(self) -> float:
            in_flight.append(sum(program.queued for program in programs))
            return super().wait()

    programs = [Noting() for _ in range(4)]
    calls, seconds = timed_engine.timed_streams(programs, None, seconds=0.1, limit_seconds=5.0)
    assert seconds >= 0.1
    # before each wait but those that empty the queues at the end
    assert in_flight == [4] * (len(in_flight) - 4) + [4, 3, 2, 1]
    assert calls < len(in_flight) - 4, "filling the queues does not count"
    assert {(program.queued, program.most) for program in programs} == {(0, 1)}
    assert gc.isenabled()
    # calls slower than the limit are counted once
    calls, seconds = timed_engine.timed_streams([Program()], None, seconds=0.5, limit_seconds=0.001)
    assert calls == 1 and seconds >= CALL


def test_blocks_on_streams_release_their_programs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(timed_engine, "BLOCK_SECONDS", 0.02)
    programs, checked = [Program(), Program()], []
    each = {"state": lambda: GpuState(throttled=[]), "limit_seconds": 30.0}
    found = timed_engine.blocks_on_streams(
        programs, "inputs", check=lambda outputs, inputs: checked.append(inputs), **each
    )
    assert checked == ["inputs"] * 2
    assert found.gpu == [GpuState(throttled=[])] * timed_engine.BLOCKS
    assert len(found.calls) == timed_engine.BLOCKS
    assert min(found.seconds) >= 0.02
    assert all(program.released for program in programs)
    # also where outputs are wrong
    programs = [Program(), Program()]
    with pytest.raises(ZeroDivisionError):
        timed_engine.blocks_on_streams(programs, None, check=lambda outputs, inputs: 1 / 0, **each)
    assert all(program.released for program in programs)
