"""Which pairs of blocks count: of recorded facts, and of real processes on one processor."""

import io
import os
import re
import signal
import subprocess
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import psutil
import pytest
from busy import PROCESSORS, busy_child, wait
from disturbed import QUIET, WAITED
from msgspec.structs import replace
from tightrope.jobs.child import Child
from tightrope.machine import counters, interference
from tightrope.machine.interference import Block, GpuState, Windows, of_pair
from tightrope.machine.processes import family
from tightrope.records.latency import TimedShape
from tiny_model import LIMITS

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


class Statistics:
    """/proc/stat of a processor that programs have for `busy_s` from now on, then in part."""

    def __init__(self, busy_s: float, used: float) -> None:
        self.until, self.used = time.monotonic() + busy_s, used

    def read_text(self) -> str:
        idle_s = (1 - self.used) * max(0.0, time.monotonic() - self.until)
        return f"cpu{ONE} 0 0 0 {int(idle_s * counters.TICKS)} 0 0 0 0 0 0\n"


def machine(monkeypatch, seconds, busy_s, used=0.0) -> interference.QuietMachine:
    """The only processor of a job, and its budget."""
    monkeypatch.setattr(counters, "TICKS", 10**6)
    monkeypatch.setattr(counters, "STATISTICS", Statistics(busy_s, used))
    return interference.QuietMachine([ONE], seconds, io.StringIO())


def test_it_waits_while_a_program_runs_and_then_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    for wait_for in (interference.QuietMachine.wait, interference.QuietMachine.wait_for_idle_gap):
        one = machine(monkeypatch, seconds=60, busy_s=0.3)
        lost = wait_for(one)
        assert 0.3 < lost < 30
        assert one.lost_s == lost == 60 - one.left_s
        assert one.terminal.getvalue() == ""  # of a short wait
    # between bursts less than half of a core is enough
    assert machine(monkeypatch, seconds=10, busy_s=-10, used=0.4).wait_for_idle_gap() < 10
    assert machine(monkeypatch, seconds=0.3, busy_s=-10, used=0.4).wait() == 0.3


def test_it_goes_on_when_its_seconds_are_spent(monkeypatch: pytest.MonkeyPatch) -> None:
    one = machine(monkeypatch, seconds=0.7, busy_s=3600)
    with busy_child(ONE):
        assert one.wait() == pytest.approx(0.7)
        assert one.left_s == 0
        assert one.wait() == 0  # they are for all waits together
    assert re.fullmatch(
        r"waiting for a quiet machine: .+ \(\d+ % of a core\); for at most [01] s more "
        r"\(latency.quiet_seconds\)\nthe machine stays busy: .*\n",
        one.terminal.getvalue(),
    )
    assert 1 <= len(one.busiest) <= 3


def test_the_jobs_of_a_run_share_its_seconds_and_only_the_first_waits_aloud(tmp_path: Path) -> None:
    """Three jobs, of which the first loses half to a disturbed pair."""

    def job() -> interference.QuietMachine:
        return interference.QuietMachine([ONE], 1.4, io.StringIO(), tmp_path / "run")

    job().lose(0.7)
    quiet_one = job()
    quiet_one.wait_until(0.1, cores=64)
    assert quiet_one.left_s == job().left_s == pytest.approx(0.7), "a look at a quiet machine"
    second = job()
    with busy_child(ONE):
        assert second.wait() == pytest.approx(0.7)
    assert second.terminal.getvalue().count("\n") == 2, "that it waits, and that it has waited"
    assert (job().left_s, job().told) == (0, True)


def test_programs_are_told_apart_and_no_more_given_back_than_is_left() -> None:
    one = interference.QuietMachine([ONE], 10.0, io.StringIO())
    found = [(one.lose(seconds), one.left_s) for seconds in (4.0, 8.0, 1.0)]
    assert found == [(4.0, 6.0), (6.0, 0.0), (0.0, 0.0)]
    assert one.lost_s == 13.0
    words = "a (97 % of a core), b c (150 % of a core)"
    assert interference.in_words([("a", 0.974), ("b c", 1.5)]) == words


def test_programs_are_named_but_this_one_and_its_workers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with busy_child(ONE) as child, Child(lambda: wait(1.0), LIMITS) as worker:
        programs = [psutil.Process(), psutil.Process(worker.process.pid), child]
        monkeypatch.setattr(psutil, "process_iter", lambda: programs)
        assert interference.busiest_programs() == []
        worker.ask()
        # a program that is an argument itself is not printed
        ((name, cores),) = interference.busiest_programs()
        assert name == child.name() and 0.05 <= cores < 1.1
    script = tmp_path / "training.py"
    script.write_text("import time; print(flush=True); time.sleep(60)")
    with psutil.Popen(["python3", str(script)], stdout=-1) as program:
        program.stdout.readline()
        name = interference.short_name(psutil.Process(program.pid))
        program.kill()
    assert name.startswith("python") and name.endswith(" training.py")


def test_the_family_of_a_worker_is_its_job_with_all_workers_and_what_started_the_job() -> None:
    shell = ["sh", "-c", "sleep 30 >/dev/null & echo $!"]  # it ends, and init has the program
    stranger = int(subprocess.check_output(shell))
    with ExitStack() as stack:
        stack.callback(os.kill, stranger, signal.SIGKILL)
        one, other = (stack.enter_context(Child(family, LIMITS)) for _ in range(2))
        busy = stack.enter_context(busy_child(PROCESSORS[-1]))
        found = one.ask()
        assert {one.process.pid, other.process.pid, busy.pid, os.getpid(), os.getppid()} <= found
        assert stranger not in found
