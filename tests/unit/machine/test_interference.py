"""Which pairs of blocks count: of recorded facts, and of real processes on one processor."""

import time
from collections.abc import Callable
from pathlib import Path

import pytest
from busy import PROCESSORS
from disturbed import QUIET, WAITED
from msgspec.structs import replace
from tightrope.machine import counters, interference
from tightrope.machine.interference import Block, GpuState, Windows, of_pair
from tightrope.records.latency import TimedShape

ONE = PROCESSORS[-1]
NOTHING = dict.fromkeys(("waited", "stolen", "preempted"), 0.0)
UNKNOWN = replace(QUIET, waited=None)
BLOCK = Block(samples_s=[0.05], seconds=0.05, waited_s=0.0, preempted=1, stolen_s=0.0)


def test_of_a_pair_the_block_that_had_it_worse_counts() -> None:
    for worse, threads, expected in (
        ({"waited_s": 0.01, "stolen_s": 0.02}, 1, {"waited": 0.2, "stolen": 0.4}),
        ({"preempted": 11}, 2, {"preempted": 100}),  # per thread
        ({"waited_s": None}, 1, {"waited": None}),
        # a short block may lose its processor once
        ({"preempted": 1, "seconds": 1e-5}, 1, {"preempted": 0}),
    ):
        other = replace(BLOCK, **worse)
        for blocks in ([other, BLOCK], [BLOCK, other]):
            pair = of_pair(blocks, threads, 3)
            found = {name: getattr(pair, name) for name in NOTHING}
            assert (found, pair.window) == (pytest.approx(NOTHING | expected), 3)


def test_a_pair_counts_unless_its_threads_waited_where_others_ran() -> None:
    for facts, foreign, expected in (
        (replace(QUIET, waited=0.05), 1.0, None),
        (replace(QUIET, waited=0.051), 1.0, "waited"),
        (replace(UNKNOWN, preempted=101), 1.0, "preempted"),
        (replace(QUIET, stolen=0.05, preempted=10**6), 1.0, None),
        (replace(QUIET, stolen=0.051), 0.0, "stolen"),
        (WAITED, interference.MAX_FOREIGN_CORES, None),
        (WAITED, interference.MAX_FOREIGN_CORES + 0.01, "waited"),
        (replace(UNKNOWN, preempted=500), interference.MAX_FOREIGN_CORES, None),
        (WAITED, None, "waited"),
    ):
        assert interference.disturbance(facts, [foreign]) == expected
    # it is told by its window and those beside it
    for place, foreign_cores, expected in (
        (1, [0.0], "waited"),  # its window is not there yet
        (0, [0.0, 1.0], "waited"),  # a burst in the window before or after
        (1, [1.0, 0.0], "waited"),
        (0, [0.0, None], None),
        (2, [1.0, 0.0, 0.0, 0.0, 1.0], None),
    ):
        assert interference.disturbance(replace(WAITED, window=place), foreign_cores) == expected
        assert interference.disturbance(replace(QUIET, window=place), foreign_cores) is None
    later = replace(WAITED, window=2)
    pairs = {"pairs": [WAITED, later, QUIET, later], "foreign_cores": [1.0, 0.0, 0.0]}
    assert TimedShape(batch=1, **pairs).undisturbed() == [1, 2, 3]
    # a number takes more than half of the pairs that were asked for
    for asked, measured, fewest in ((20, 20, 11), (20, 40, 11), (20, 5, 3), (2, 2, 2), (12, 1, 1)):
        assert interference.fewest_pairs(measured, {"pairs": asked}) == fewest


def on_gpu(throttled: list[str] | None = None, others: int | None = 0) -> Block:
    state = GpuState(throttled=throttled, other_processes=1, computing_processes=others)
    return replace(BLOCK, gpu=state)


def test_a_pair_does_not_count_where_the_gpu_was_slowed_down_or_shared() -> None:
    for state, expected in (
        (on_gpu(None, None), None),
        (on_gpu(["power cap"]), None),
        (on_gpu(["power cap", "hardware slowdown"]), "throttled"),
        (on_gpu([], 1), "shared"),
        (on_gpu(["thermal slowdown"], 1), "throttled"),
    ):
        for blocks in ([state, on_gpu([])], [on_gpu([]), state]):
            assert interference.disturbance(of_pair(blocks, 1, 0), [0.0]) == expected
    found = of_pair([on_gpu(["thermal slowdown", "power cap"]), on_gpu(["power cap"], 2)], 1, 0)
    assert found.throttled == ["power cap", "thermal slowdown"]
    assert found.computing_processes == 2


@pytest.fixture
def idle(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[[float], None]:
    """Adds idle seconds to what the kernel counts of the only processor."""
    statistics, counted = tmp_path / "stat", [0.0]
    monkeypatch.setattr(counters, "STATISTICS", statistics)

    def add(seconds: float) -> None:
        counted[0] += seconds * counters.TICKS
        statistics.write_text(f"cpu{ONE} 0 0 0 {counted[0]:.0f} 0 0 0 0 0 0\n")

    add(0)
    return add


def closed(windows: Windows) -> float | None:
    time.sleep(windows.seconds)
    return windows.close_when_due()


def test_what_is_neither_idle_nor_own_time_is_that_of_others(idle: Callable[[float], None]) -> None:
    """What happened before a window was opened again is in none."""
    others, own = (Windows([ONE], lambda: 0.0), Windows([ONE], time.monotonic))
    assert closed(others) == 1
    assert own.close() == pytest.approx(0, abs=0.01)
    others.open()
    idle(60)
    assert closed(others) == 0
    assert (others.cores, others.index) == ([1, 0], 2)
    idle(60)
    others.open()
    assert closed(others) == 1
    # the last window has half of the length or is unknown
    windows = Windows([ONE], lambda: 0.0)
    windows.seconds = 3600.0
    assert windows.close_when_due() is None
    assert windows.index == 0
    assert windows.close_when_due(last=True) is None
    assert (windows.cores, windows.index) == ([None], 1)
    windows.seconds = 2 * (time.monotonic() - windows.began[0])
    assert windows.close_when_due(last=True) == 1
