import gc
import time

import pytest
from tightrope.measure.timing import timed_calls

SECONDS = 0.002


def wait(seconds: float) -> None:
    """Keep the processor busy: a sleep would end late."""
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        pass


def test_each_sample_is_the_time_of_one_call() -> None:
    samples = timed_calls(wait, SECONDS, seconds=0.0, calls=50, limit_seconds=10.0)
    assert len(samples) == 50
    assert min(samples) >= SECONDS
    assert sorted(samples)[25] == pytest.approx(SECONDS, rel=0.05)


def test_at_least_so_many_calls_are_made_however_long_they_take() -> None:
    seen: list[str] = []
    samples = timed_calls(seen.append, "inputs", seconds=0.0, calls=7, limit_seconds=10.0)
    assert seen == ["inputs"] * 7
    assert len(samples) == 7


def test_calls_go_on_for_at_least_so_many_seconds() -> None:
    began = time.perf_counter()
    samples = timed_calls(wait, SECONDS, seconds=0.2, calls=1, limit_seconds=10.0)
    assert time.perf_counter() - began >= 0.2
    assert 20 < len(samples) <= 0.2 / SECONDS + 1


def test_the_limit_beats_calls_and_seconds() -> None:
    began = time.perf_counter()
    samples = timed_calls(wait, SECONDS, seconds=60.0, calls=10**6, limit_seconds=0.05)
    assert time.perf_counter() - began < 1.0
    assert 1 <= len(samples) <= 0.05 / SECONDS + 1


def test_one_call_is_made_even_when_no_time_is_left() -> None:
    assert len(timed_calls(wait, SECONDS, seconds=1.0, calls=5, limit_seconds=0.0)) == 1


def test_garbage_is_not_collected_meanwhile_and_is_afterwards() -> None:
    states: list[bool] = []
    timed_calls(
        lambda _: states.append(gc.isenabled()), None, seconds=0.0, calls=3, limit_seconds=1.0
    )
    assert states == [False] * 3
    assert gc.isenabled()


def test_the_collector_is_left_as_it_was_when_a_call_fails() -> None:
    with pytest.raises(ZeroDivisionError):
        timed_calls(lambda x: 1 / x, 0, seconds=0.0, calls=3, limit_seconds=1.0)
    assert gc.isenabled()
    gc.disable()
    try:
        timed_calls(wait, 0.0, seconds=0.0, calls=1, limit_seconds=1.0)
        assert not gc.isenabled()
    finally:
        gc.enable()
