"""Which pairs of blocks count: of recorded facts, and of real processes on one processor."""

import time
from contextlib import ExitStack
from typing import Any

import numpy as np
import pytest
from busy import PROCESSORS, busy_child, hashing, needs_quiet, wait
from disturbed import BUSY, QUIET, WAITED
from tightrope.jobs.child import Child
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


@pytest.mark.parametrize("turned", [False, True])
def test_of_a_pair_the_block_that_had_it_worse_counts(turned: bool) -> None:
    worse = block(waited_s=0.01, stolen_s=0.02, preempted=11)
    blocks = (worse, block()) if turned else (block(), worse)
    found = pair(*blocks)
    assert found == {
        "waited": pytest.approx(0.2),
        "stolen": pytest.approx(0.4),
        "preempted": pytest.approx(200),
        "window": 3,
    }


def test_a_short_block_may_lose_its_processor_once() -> None:
    assert pair(block(seconds=1e-5, preempted=1), block())["preempted"] == 0


def test_lost_processors_are_counted_per_thread() -> None:
    assert pair(block(preempted=11), block(preempted=11), threads=2)["preempted"] == 100


def test_waiting_that_one_of_the_two_does_not_know_is_unknown() -> None:
    assert pair(block(waited_s=None), block())["waited"] is None
    assert pair(block(), block(waited_s=None))["waited"] is None


@pytest.mark.parametrize(
    ("facts", "foreign", "expected"),
    [
        (QUIET, 1.0, None),
        ({**QUIET, "waited": 0.05}, 1.0, None),
        ({**QUIET, "waited": 0.051}, 1.0, "waited"),
        ({**QUIET, "preempted": 10**6}, 1.0, None),
        ({**UNKNOWN, "preempted": 100}, 1.0, None),
        ({**UNKNOWN, "preempted": 101}, 1.0, "preempted"),
        ({**QUIET, "stolen": 0.05}, 1.0, None),
        ({**WAITED, "stolen": 0.051}, 1.0, "stolen"),
        ({**UNKNOWN, "stolen": 0.051}, 0.0, "stolen"),
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
        (on_gpu(), None),
        (on_gpu([]), None),
        (on_gpu(None, None), None),
        (on_gpu(["power cap"]), None),
        (on_gpu(["sync boost", "display clocks"]), None),
        (on_gpu(["thermal slowdown"]), "throttled"),
        (on_gpu(["power cap", "hardware slowdown"]), "throttled"),
        (on_gpu(["hardware thermal slowdown"]), "throttled"),
        (on_gpu(["power brake"]), "throttled"),
        (on_gpu([], 1), "shared"),
        (on_gpu(["thermal slowdown"], 1), "throttled"),
    ],
)
@pytest.mark.parametrize("turned", [False, True])
def test_a_pair_does_not_count_where_the_gpu_was_slowed_down_or_shared(
    state: dict[str, Any], expected: str | None, turned: bool
) -> None:
    blocks = (state, on_gpu([])) if turned else (on_gpu([]), state)
    found = pair(*blocks) | {"window": 0}
    assert disturbance(found, [0.0]) == expected
    assert undisturbed({"pairs": [found], "foreign_cores": [0.0]}) == ([] if expected else [0])


def test_a_pair_has_the_reasons_and_the_most_processes_of_both_blocks() -> None:
    found = pair(on_gpu(["power cap", "thermal slowdown"]), on_gpu(["power cap"], 2))
    assert found["throttled"] == ["power cap", "thermal slowdown"]
    assert found["other_processes"] == 2
    assert pair(on_gpu(None, None), on_gpu(None, None))["other_processes"] is None


def test_how_long_a_block_took_is_no_reason() -> None:
    for seconds in (1e-6, 0.05, 60.0):
        assert disturbance(pair(block(seconds=seconds), block()) | {"window": 0}, BUSY) is None


def test_in_a_window_that_is_not_there_yet_a_pair_that_waited_does_not_count() -> None:
    assert disturbance({**WAITED, "window": 1}, [0.0]) == "waited"
    assert disturbance({**QUIET, "window": 1}, [0.0]) is None


def test_a_burst_before_or_after_the_window_of_a_pair_disturbs_it_too() -> None:
    assert disturbance(WAITED, [0.0, 1.0]) == "waited"
    assert disturbance(QUIET, [0.0, 1.0]) is None
    assert disturbance(WAITED, [0.0, None]) is None
    assert disturbance({**WAITED, "window": 1}, [1.0, 0.0]) == "waited"
    assert disturbance({**WAITED, "window": 2}, [1.0, 0.0, 0.0, 0.0, 1.0]) is None


def test_the_pairs_that_count_are_those_of_their_own_windows() -> None:
    later = {**WAITED, "window": 2}
    shape = {"pairs": [WAITED, later, QUIET, later], "foreign_cores": [1.0, 0.0, 0.0]}
    assert undisturbed(shape) == [1, 2, 3]


@pytest.mark.parametrize(
    ("asked", "measured", "fewest"),
    [(20, 20, 11), (20, 40, 11), (20, 5, 3), (2, 2, 2), (12, 12, 7), (3, 3, 2), (12, 1, 1)],
)
def test_a_number_takes_more_than_half_of_the_pairs_that_were_asked_for(
    asked: int, measured: int, fewest: int
) -> None:
    assert fewest_pairs(measured, {"pairs": asked}) == fewest


def own_seconds() -> float:
    return time.process_time()


def closed(windows: Windows, seconds: float) -> float | None:
    time.sleep(seconds)
    return windows.close_when_due()


@pytest.mark.parametrize(("processors", "seconds"), [(2, 0.14), (16, 0.41), (64, 0.82)])
def test_a_window_is_so_long_that_ticks_hardly_blur_it(processors: int, seconds: float) -> None:
    """By drawing when the counters of half-busy processors are read: they are whole ticks."""
    length = window_seconds(processors)
    assert length == pytest.approx(seconds, abs=0.01)
    draw = np.random.default_rng(processors)
    before = draw.uniform(0, 1, (4000, processors))
    idle = draw.uniform(0.4, 0.6, (4000, processors)) * length
    counted = np.floor((before + idle) * 100) / 100 - np.floor(before * 100) / 100
    assert np.std((counted - idle).sum(axis=1) / length) == pytest.approx(BLUR, rel=0.1)


def test_a_gap_between_two_bursts_is_a_window_of_its_own() -> None:
    """Of a program that has the processor for half of the time, in turns of a third of a second."""

    def holds() -> bool:
        windows = Windows([ONE], own_seconds)
        with busy_child(ONE, seconds=0.4):
            time.sleep(0.4)
            windows.close_when_due()
        windows.open()
        gap = closed(windows, windows.seconds)
        return windows.cores[0] > 0.8 and gap is not None and gap <= MAX_FOREIGN_CORES

    needs_quiet(holds)


def test_a_program_on_its_processor_fills_a_window() -> None:
    with busy_child(ONE):
        windows = Windows([ONE], own_seconds)
        found = closed(windows, 1.1)
    assert found == windows.cores[0] == pytest.approx(1.0, abs=0.15)
    assert windows.index == 1


def test_own_work_is_not_that_of_others() -> None:
    with busy_child(ONE) as child:
        windows = Windows([ONE], lambda: sum(child.cpu_times()[:2]))
        foreign = closed(windows, 1.1)
    # what strangers take of the processor, the child does not get
    assert foreign < 0.9


def test_a_window_is_closed_when_it_is_long_enough_and_the_last_one_after_half_of_it() -> None:
    windows = Windows([ONE], own_seconds)
    assert closed(windows, 0.6 * windows.seconds) is None
    assert (windows.index, windows.cores) == (0, [])
    assert windows.close_when_due(last=True) is not None
    assert windows.index == 1


def test_a_last_window_that_is_too_short_stays_unknown_when_others_follow() -> None:
    """The pairs of the next load must not be told by the window of this one, nor these by its."""
    first = Windows([ONE], own_seconds)
    first.close_when_due(last=True)
    assert first.cores == [None]
    following = Windows([ONE], own_seconds)
    following.cores = first.cores
    assert following.index == 1


def test_what_happened_before_a_window_was_opened_is_not_in_it() -> None:
    with busy_child(ONE, seconds=0.5) as child:
        windows = Windows([ONE], lambda: 0.0)
        child.wait()
    began = windows.began
    windows.open()
    assert windows.began[0] > began[0] and windows.began[1] >= began[1]
    assert windows.cores == []


def pair_of_blocks(threads: int, windows: Windows, worker: Child) -> dict[str, Any]:
    blocks = [worker.ask("block", 0, 0.3, 1, 30.0) for _ in range(2)]
    return of_pair(blocks, threads, windows.index)


def measured(run: Any, inputs: Any, threads: int, pairs: int) -> dict[str, Any]:
    """The shape of so many pairs of blocks of an engine alone, on one processor."""
    with ExitStack() as stack:
        engine = TimedEngine(lambda: (run(), {}), [inputs], [ONE])
        worker = stack.enter_context(Child(engine, LIMITS))
        worker.ask("load")
        worker.ask("first_call", 0)
        windows = Windows([ONE], lambda: own_seconds() + worker.ask("cpu_seconds"))
        found = []
        for _ in range(pairs):
            found.append(pair_of_blocks(threads, windows, worker))
            windows.close_when_due()
        windows.close_when_due(last=True)
        return {"pairs": found, "foreign_cores": windows.cores}


def test_threads_that_wait_for_each_other_are_the_engines_own() -> None:
    """Two threads on one processor: either waits half of the time, and nobody else ran."""
    for _ in range(3):
        shape = measured(lambda: hashing(2), bytes(4 << 20), 2, 4)
        known = [one for one in shape["foreign_cores"] if one is not None]
        if known and max(known) <= MAX_FOREIGN_CORES:
            own = [place for place, one in enumerate(shape["pairs"]) if one["window"] < len(known)]
            assert min(one["waited"] for one in shape["pairs"]) > 0.2
            assert undisturbed(shape) == own != []
            return
    pytest.skip(f"other programs have processor {ONE}: {shape['foreign_cores']}")


def test_pairs_beside_a_program_on_their_processor_do_not_count() -> None:
    with busy_child(ONE):
        shape = measured(lambda: lambda _: wait(0.01), None, 1, 4)
    assert max(filter(None, shape["foreign_cores"])) > 0.3
    assert undisturbed(shape) == []
    assert {disturbance(one, shape["foreign_cores"]) for one in shape["pairs"]} == {"waited"}
