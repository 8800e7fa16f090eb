"""The peaks of a machine, on a device of the test that works after its calls have returned."""

import time

import pytest
from tightrope.measure import peaks


def test_calls_that_return_before_they_are_done_are_waited_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Until the host's clock said 0.1 s it would enqueue 500,000 of them, and wait for hours."""
    waiting: list[float] = []
    most = 0

    def wait(device: str) -> None:
        nonlocal most
        most = max(most, len(waiting))
        time.sleep(sum(waiting))
        waiting.clear()

    monkeypatch.setattr(peaks, "synchronize", wait)
    began = time.perf_counter()
    assert peaks.seconds_of(lambda: waiting.append(0.02), "cuda") == pytest.approx(0.02, rel=0.2)
    assert most <= 5
    assert time.perf_counter() - began < 2
