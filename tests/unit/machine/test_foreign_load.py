"""What the kernel counts, of real processes that work, wait, sleep and spin.

What needs a process with no other threads, or one processor for itself, runs in a child.
"""

import hashlib
import os
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest
from busy import PROCESSORS, busy_child, hash_forever, wait
from tightrope.jobs.child import supervised
from tightrope.machine.foreign_load import (
    Counters,
    any_other_thread_runs,
    counters,
    idle_seconds,
    settle,
    stolen_seconds,
)
from tiny_model import LIMITS

ONE = PROCESSORS[-1]
# hashed in one native call of a tenth of a second or more, in which Python's lock is not held
LONG_WORK = bytes(256 << 20)


def in_child(work: Callable[[], Any]) -> Any:
    return supervised(work, limits=LIMITS)


def counted_on(processor: int, work: Callable[[], Any]) -> tuple[Counters, float]:
    """The counters of a child on that processor over `work`, and the seconds that it took."""

    def measured() -> tuple[Counters, float]:
        os.sched_setaffinity(0, [processor])
        before, began = counters(), time.perf_counter()
        work()
        return counters().since(before), time.perf_counter() - began

    return in_child(measured)


def waiting_is_counted() -> bool:
    return counters().waited_s is not None


needs_schedstat = pytest.mark.skipif(not waiting_is_counted(), reason="kernel without schedstat")


def test_the_difference_of_two_counters_is_what_happened_in_between() -> None:
    before = Counters({1: 2.0, 2: 5.0}, 0.25, 7, 1.5)
    after = Counters({1: 2.5, 2: 5.0}, 0.75, 9, 1.75)
    assert after.since(before) == Counters({1: 0.5, 2: 0.0}, 0.5, 2, 0.25)


def test_a_thread_that_started_in_between_counts_whole_and_one_that_ended_not() -> None:
    before = Counters({1: 2.0, 2: 5.0}, 0.0, 0, 0.0)
    after = Counters({1: 2.0, 3: 0.5}, 0.0, 0, 0.0)
    assert after.since(before).threads == {1: 0.0, 3: 0.5}


@pytest.mark.parametrize(("earlier", "later"), [(None, None), (None, 1.0), (1.0, None)])
def test_waiting_that_was_not_counted_both_times_is_unknown(
    earlier: float | None, later: float | None
) -> None:
    before, after = (Counters({}, waited, 0, 0.0) for waited in (earlier, later))
    assert after.since(before).waited_s is None


def test_the_seconds_of_a_thread_are_those_of_its_own_clock() -> None:
    before, began = counters(), time.thread_time()
    wait(0.2)
    counted, used = counters().since(before), time.thread_time() - began
    assert counted.threads[threading.get_native_id()] == pytest.approx(used, abs=0.02)


def test_each_thread_is_counted_for_itself() -> None:
    def used_by_both() -> tuple[float, float]:
        ready, leave = threading.Event(), threading.Event()

        def work() -> None:
            hashlib.sha256(LONG_WORK).digest()
            ready.set()
            leave.wait()

        before = counters()
        thread = threading.Thread(target=work)
        thread.start()
        ready.wait()
        threads = counters().since(before).threads
        leave.set()
        return threads[threading.get_native_id()], threads[thread.native_id]

    main, other = in_child(used_by_both)
    assert other > 0.05
    assert main < 0.5 * other


@needs_schedstat
def test_a_program_on_the_same_processor_makes_a_process_wait() -> None:
    with busy_child(ONE):
        counted, elapsed = counted_on(ONE, lambda: wait(0.5))
    assert counted.waited_s > 0.2 * elapsed


@needs_schedstat
def test_sleep_is_no_waiting() -> None:
    waited = [counted_on(ONE, lambda: time.sleep(0.3))[0].waited_s for _ in range(3)]
    assert 0 <= min(waited) < 0.01


def test_a_program_on_the_same_processor_takes_it_away_again_and_again() -> None:
    with busy_child(ONE):
        counted, _ = counted_on(ONE, lambda: wait(0.5))
    assert counted.preempted >= 5


def test_time_that_a_hypervisor_took_is_that_of_the_named_processors_and_only_grows() -> None:
    assert stolen_seconds(set()) == 0
    before = sum(stolen_seconds({number}) for number in PROCESSORS)
    after = stolen_seconds(set(PROCESSORS))
    assert 0 <= before <= after + 1e-9
    assert counters().since(counters()).stolen_s <= 0


def spinning_until() -> list[float]:
    """A thread that hashes in native code; when it ended is in the list then."""
    ended: list[float] = []

    def work() -> None:
        hashlib.sha256(LONG_WORK).digest()
        ended.append(time.perf_counter())

    threading.Thread(target=work, daemon=True).start()
    while not any_other_thread_runs():
        time.sleep(0.001)
    return ended


def test_a_process_settles_as_soon_as_its_other_thread_has_stopped() -> None:
    def late() -> float:
        ended = spinning_until()
        settle(limit_seconds=30)
        settled = time.perf_counter()
        time.sleep(0.1)
        return settled - ended[0]

    assert -0.05 < in_child(late) < 1


def test_a_process_whose_thread_never_stops_is_given_up_at_the_limit() -> None:
    def seconds() -> float:
        hash_forever()
        while not any_other_thread_runs():
            time.sleep(0.001)
        began = time.perf_counter()
        settle(limit_seconds=0.3)
        return time.perf_counter() - began

    # between two hashes the thread sleeps for an instant, in which it may be seen
    assert 0.25 < max(in_child(seconds) for _ in range(5)) < 2


def test_a_process_of_one_thread_is_settled_at_once() -> None:
    def seconds() -> float:
        began = time.perf_counter()
        settle(limit_seconds=30)
        return time.perf_counter() - began

    assert in_child(seconds) < 1


def test_a_thread_that_sleeps_does_not_run() -> None:
    def runs() -> list[bool]:
        leave = threading.Event()
        threading.Thread(target=leave.wait).start()
        time.sleep(0.1)
        found = [any_other_thread_runs() for _ in range(20)]
        leave.set()
        return found

    assert not all(in_child(runs))


def test_idle_time_is_that_of_the_named_processors() -> None:
    assert idle_seconds(set()) == 0
    each = sum(idle_seconds({number}) for number in PROCESSORS)
    both = idle_seconds(PROCESSORS)
    assert each == pytest.approx(both, abs=0.1 * len(PROCESSORS))


def test_a_processor_that_a_program_has_is_not_idle() -> None:
    with busy_child(ONE):
        before = idle_seconds([ONE])
        time.sleep(0.5)
        assert idle_seconds([ONE]) - before < 0.1


def test_processors_are_never_idle_for_longer_than_the_clock_says() -> None:
    began, before = time.monotonic(), idle_seconds(PROCESSORS)
    time.sleep(0.5)
    idle = idle_seconds(PROCESSORS) - before
    assert 0 <= idle <= len(PROCESSORS) * (time.monotonic() - began + 0.05)


def test_threads_that_end_meanwhile_are_no_matter() -> None:
    """Between listing the threads and reading of one it may have ended."""

    def amid_short_threads() -> tuple[int, int]:
        known, stop = waiting_is_counted(), time.perf_counter() + 2
        calls = unknown = 0

        def spawn() -> None:
            while time.perf_counter() < stop:
                threading.Thread(target=time.sleep, args=(0.0001,)).start()

        threading.Thread(target=spawn).start()
        while time.perf_counter() < stop:
            any_other_thread_runs()
            unknown += known and counters().waited_s is None
            calls += 1
        return calls, unknown

    calls, unknown = in_child(amid_short_threads)
    assert calls > 100
    assert unknown == 0
