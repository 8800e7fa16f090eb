"""Which pairs of blocks count: of recorded facts, and of real processes on one processor."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from busy import PROCESSORS, busy_child, hashing, wait
from disturbed import BUSY, QUIET, WAITED
from tightrope.jobs.child import Child
from tightrope.machine import foreign_load
from tightrope.machine.interference import (
    BLUR,
    MAX_FOREIGN_CORES,
    Windows,
    disturbance,
    fewest_pairs,
    of_pair,
    undisturbed,
    window_seconds,
)
from tightrope.measure.timed_engine import TimedEngine
from tiny_model import LIMITS

ONE = PROCESSORS[-1]
UNKNOWN = {**QUIET, "waited": None}
BLOCK = {"seconds": 0.05, "waited_s": 0.0, "preempted": 0, "stolen_s": 0.0}


def block(**changes: Any) -> dict[str, Any]:
    return {**BLOCK, **changes}


def pair(first: dict[str, Any], second: dict[str, Any], threads: int = 1) -> dict[str, Any]:
    return of_pair([first, second], threads, 3)


@pytest.mark.parametrize(
    ("worse", "threads", "expected"),
    [
        ({"waited_s": 0.01, "stolen_s": 0.02}, 1, {"waited": 0.2, "stolen": 0.4}),
        ({"preempted": 11}, 1, {"preempted": 200}),
        ({"preempted": 11}, 2, {"preempted": 100}),  # per thread
        ({"waited_s": None}, 1, {"waited": None}),
        # a short block may lose its processor once
        ({"preempted": 1, "seconds": 1e-5}, 1, {"preempted": 0}),
    ],
)
@pytest.mark.parametrize("turned", [False, True])
def test_of_a_pair_the_block_that_had_it_worse_counts(
    worse: dict[str, Any], threads: int, expected: dict[str, Any], turned: bool
) -> None:
    blocks = [block(preempted=1), block(**{"preempted": 1} | worse)]
    found = pair(*(reversed(blocks) if turned else blocks), threads=threads)
    assert found == pytest.approx({**QUIET, "window": 3} | expected)


def test_how_long_a_block_took_is_no_reason() -> None:
    assert disturbance(pair(block(seconds=60.0), block()) | {"window": 0}, BUSY) is None


@pytest.mark.parametrize(
    ("facts", "foreign", "expected"),
    [
        ({**QUIET, "waited": 0.05}, 1.0, None),
        ({**QUIET, "waited": 0.051}, 1.0, "waited"),
        ({**UNKNOWN, "preempted": 100}, 1.0, None),
        ({**UNKNOWN, "preempted": 101}, 1.0, "preempted"),
        ({**QUIET, "stolen": 0.05, "preempted": 10**6}, 1.0, None),
        ({**QUIET, "stolen": 0.051}, 0.0, "stolen"),
        (WAITED, MAX_FOREIGN_CORES, None),
        (WAITED, MAX_FOREIGN_CORES + 0.01, "waited"),
        ({**UNKNOWN, "preempted": 500}, MAX_FOREIGN_CORES, None),
        (WAITED, None, "waited"),
    ],
)
def test_a_pair_counts_unless_its_threads_waited_where_others_ran(
    facts: dict[str, Any], foreign: float | None, expected: str | None
) -> None:
    assert disturbance(facts, [foreign]) == expected


def on_gpu(throttled: list[str] | None = None, others: int | None = 0) -> dict[str, Any]:
    return block(gpu={"throttled": throttled, "other_processes": others})


@pytest.mark.parametrize(
    ("state", "expected"),
    [
        (on_gpu([]), None),
        (on_gpu(None, None), None),
        (on_gpu(["power cap"]), None),
        (on_gpu(["thermal slowdown"]), "throttled"),
        (on_gpu(["power cap", "hardware slowdown"]), "throttled"),
        (on_gpu([], 1), "shared"),
        (on_gpu(["thermal slowdown"], 1), "throttled"),
    ],
)
@pytest.mark.parametrize("turned", [False, True])
def test_a_pair_does_not_count_where_the_gpu_was_slowed_down_or_shared(
    state: dict[str, Any], expected: str | None, turned: bool
) -> None:
    blocks = (state, on_gpu([])) if turned else (on_gpu([]), state)
    assert disturbance(pair(*blocks) | {"window": 0}, [0.0]) == expected


def test_a_pair_has_the_reasons_and_the_most_processes_of_both_blocks() -> None:
    found = pair(on_gpu(["power cap", "thermal slowdown"]), on_gpu(["power cap"], 2))
    assert found["throttled"] == ["power cap", "thermal slowdown"]
    assert found["other_processes"] == 2
    assert pair(on_gpu(None, None), on_gpu(None, None))["other_processes"] is None


@pytest.mark.parametrize(
    ("place", "foreign_cores", "expected"),
    [
        (1, [0.0], "waited"),  # its window is not there yet
        (0, [0.0, 1.0], "waited"),  # a burst in the window before or after
        (1, [1.0, 0.0], "waited"),
        (0, [0.0, None], None),
        (2, [1.0, 0.0, 0.0, 0.0, 1.0], None),
    ],
)
def test_a_pair_is_told_by_its_window_and_those_beside_it(
    place: int, foreign_cores: list[float | None], expected: str | None
) -> None:
    assert disturbance({**WAITED, "window": place}, foreign_cores) == expected
    assert disturbance({**QUIET, "window": place}, foreign_cores) is None


def test_the_pairs_that_count_are_those_of_their_own_windows() -> None:
    later = {**WAITED, "window": 2}
    shape = {"pairs": [WAITED, later, QUIET, later], "foreign_cores": [1.0, 0.0, 0.0]}
    assert undisturbed(shape) == [1, 2, 3]


@pytest.mark.parametrize(
    ("asked", "measured", "fewest"),
    [(20, 20, 11), (20, 40, 11), (20, 5, 3), (2, 2, 2), (3, 3, 2), (12, 1, 1)],
)
def test_a_number_takes_more_than_half_of_the_pairs_that_were_asked_for(
    asked: int, measured: int, fewest: int
) -> None:
    assert fewest_pairs(measured, {"pairs": asked}) == fewest


@pytest.mark.parametrize("processors", [2, 64])
def test_a_window_is_so_long_that_ticks_hardly_blur_it(processors: int) -> None:
    """By drawing when the counters of half-busy processors are read: they are whole ticks."""
    length = window_seconds(processors)
    draw = np.random.default_rng(processors)
    before = draw.uniform(0, 1, (4000, processors))
    idle = draw.uniform(0.4, 0.6, (4000, processors)) * length
    counted = np.floor((before + idle) * 100) / 100 - np.floor(before * 100) / 100
    assert np.std((counted - idle).sum(axis=1) / length) == pytest.approx(BLUR, rel=0.1)


@pytest.fixture
def idle(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[[float], None]:
    """Adds idle seconds to what the kernel counts of the only processor."""
    statistics, counted = tmp_path / "stat", [0.0]
    monkeypatch.setattr(foreign_load, "STATISTICS", statistics)

    def add(seconds: float) -> None:
        counted[0] += seconds * foreign_load.TICKS
        statistics.write_text(f"cpu{ONE} 0 0 0 {counted[0]:.0f} 0 0 0 0 0 0\n")

    add(0)
    return add


def closed(windows: Windows) -> float | None:
    time.sleep(windows.seconds)
    return windows.close_when_due()


def test_what_is_neither_idle_nor_own_time_is_that_of_others(idle: Callable[[float], None]) -> None:
    """What happened before a window was opened again is in none."""
    others, own = Windows([ONE], lambda: 0.0), Windows([ONE], time.monotonic)
    assert closed(others) == 1
    assert own.close() == pytest.approx(0, abs=0.01)
    others.open()
    idle(60)
    assert closed(others) == 0
    assert (others.cores, others.index) == ([1, 0], 2)
    idle(60)
    others.open()
    assert closed(others) == 1


def test_the_last_window_is_closed_after_half_of_its_length_else_it_is_unknown(
    idle: Callable[[float], None],
) -> None:
    """Pairs of the next load must not be told by a window that is too short."""
    windows = Windows([ONE], lambda: 0.0)
    windows.seconds = 3600.0
    assert windows.close_when_due() is None
    assert windows.index == 0
    assert windows.close_when_due(last=True) is None
    assert (windows.cores, windows.index) == ([None], 1)
    windows.seconds = 2 * (time.monotonic() - windows.began[0])
    assert windows.close_when_due(last=True) == 1


def test_a_program_on_its_processor_fills_a_window() -> None:
    with busy_child(ONE):
        windows = Windows([ONE], time.process_time)
        time.sleep(1.1)
        assert windows.close_when_due() == pytest.approx(1.0, abs=0.15)


def measured(run: Callable[[Any], Any], inputs: Any, threads: int) -> dict[str, Any]:
    """A pair of blocks of an engine on one processor, in the first window."""
    with Child(TimedEngine(lambda: (run, {}), [inputs], [ONE]), LIMITS) as worker:
        worker.ask("load")
        worker.ask("first_call", 0)
        return of_pair([worker.ask("block", 0, 0.3, 1, 30.0) for _ in range(2)], threads, 0)


def test_threads_that_wait_for_each_other_are_the_engines_own() -> None:
    """Two threads on one processor: either waits half of the time."""
    found = measured(lambda work: hashing(2)(work), bytes(4 << 20), 2)
    assert found["waited"] > 0.2
    assert disturbance(found, [0.0]) is None


def test_a_pair_beside_a_program_on_their_processor_does_not_count() -> None:
    with busy_child(ONE):
        found = measured(lambda _: wait(0.01), None, 1)
    assert disturbance(found, BUSY) == "waited"
