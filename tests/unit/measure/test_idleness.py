"""The first call after a pause: the order of the pauses, and a child that slows down in them."""

import time
from collections import Counter
from typing import Any

import pytest
from busy import PROCESSORS, busy_child, needs_quiet, wait
from disturbed import machine
from raced import HOST
from tightrope.jobs.child import Child, Limits
from tightrope.machine.interference import MAX_FOREIGN_CORES
from tightrope.measure.idleness.measure import measure_calls
from tightrope.measure.idleness.paused_engine import PausedEngine
from tightrope.measure.idleness.schedule import calls_after, schedule
from tightrope.records.idleness import IdlenessRecord, after

LIMITS = Limits(memory_bytes=4e9, seconds=60)
FAST_S, SLOW_S, ASLEEP_S = 0.002, 0.008, 0.03


class Dozing:
    """An engine that is slow when it was not called for a while."""

    def __init__(self) -> None:
        self.ended = time.perf_counter()

    def __call__(self, _: Any) -> None:
        asleep = time.perf_counter() - self.ended > ASLEEP_S
        wait(SLOW_S if asleep else FAST_S)
        self.ended = time.perf_counter()


def load() -> tuple[Any, dict[str, float]]:
    return Dozing(), {"import_s": 0.0, "load_s": 0.0}


def measured(pauses: list[float], *, max_seconds: float = 30, lost: float = 0) -> IdlenessRecord:
    """A record of calls on the last processor."""
    record = IdlenessRecord(
        **{"model": "m", "variant": "cpu-onnxruntime-fp32", "host": HOST, "libraries": {}},
        **{"threads": 1, "processors": PROCESSORS[-1:], "shape": {"batch": 1}},
        plan={"pauses": pauses, "max_seconds": max_seconds},
    )
    quiet = machine(lost)
    quiet.processors = record.processors
    with Child(PausedEngine(load, [None], record.processors), LIMITS) as worker:
        worker.ask("load")
        measure_calls(record, worker, quiet)
    record.lost_s = quiet.lost_s
    return record


@pytest.mark.parametrize(
    ("pause", "calls"), [(0.001, 30), (0.1, 30), (1, 15), (10, 7), (60, 7), (3, 10)]
)
def test_longer_pauses_are_followed_by_fewer_calls(pause: float, calls: int) -> None:
    assert calls_after(pause) == calls


def test_the_default_pauses_fit_into_the_default_time() -> None:
    planned = list(schedule([0.1, 1, 10]))
    assert Counter(planned) == {0.1: 30, 1: 15, 10: 7}
    # a block of 0.1 s and its end come before each
    assert sum(planned) + 0.2 * len(planned) < 120


def test_pauses_of_every_length_are_spread_over_the_whole_time() -> None:
    planned = list(schedule([0.1, 1, 10]))
    assert planned == list(schedule([0.1, 1, 10]))
    for pause in (0.1, 1, 10):
        places = [place for place, one in enumerate(planned) if one == pause]
        half = len(planned) / 2
        assert abs(sum(place < half for place in places) - len(places) / 2) <= 1


def test_an_engine_that_dozes_is_slow_only_after_the_long_pause() -> None:
    def holds() -> bool:
        record = measured([0.005, 0.06])
        short, long = after(record, 0.005), after(record, 0.06)
        assert (len(short), len(long)) == (30, 30)
        assert all(call["paused_s"] >= 0.06 for call in long)
        assert all(len(call["block_s"]) >= 3 for call in record.calls)
        times = [sorted(call["call_s"] for call in calls)[15] for calls in (short, long)]
        return times[0] < 1.5 * FAST_S and 0.9 * SLOW_S < times[1] < 1.5 * SLOW_S

    needs_quiet(holds)


def test_calls_that_are_not_made_in_time_are_left_out() -> None:
    record = measured([0.01, 1.0], max_seconds=2.5)
    assert 0 < len(after(record, 1.0)) < 3
    assert record.spent_s < 2.5 + 1.0


def test_a_call_that_other_load_disturbed_is_repeated_while_time_may_be_lost() -> None:
    with busy_child(PROCESSORS[-1]):
        record = measured([0.3], max_seconds=3, lost=0.5)
    assert record.lost_s >= 0.5
    disturbed = [call["foreign_cores"] > MAX_FOREIGN_CORES for call in record.calls]
    assert any(disturbed)
