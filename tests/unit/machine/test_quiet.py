"""Waiting for other programs to leave the processors alone, beside real programs."""

import io
import os
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import psutil
import pytest
from busy import PROCESSORS, busy_child, wait
from tightrope.jobs.child import Child
from tightrope.machine.interference import window_seconds
from tightrope.machine.quiet import (
    LOUDEST,
    QUIET_CORES,
    Program,
    QuietMachine,
    busiest,
    foreign_cores,
    in_words,
    program_seconds,
    short_name,
)
from tiny_model import LIMITS

ONE = PROCESSORS[-1]


def machine(seconds: float) -> QuietMachine:
    return QuietMachine([ONE], seconds, io.StringIO())


def lines(one: QuietMachine) -> list[str]:
    return one.terminal.getvalue().splitlines()


def needs_quiet() -> None:
    """Skip while other programs have this processor."""
    if min(foreign_cores([ONE], 0.3) for _ in range(5)) > QUIET_CORES:
        pytest.skip(f"other programs have processor {ONE}")


def test_on_a_quiet_machine_there_is_no_wait_and_no_word() -> None:
    needs_quiet()
    waited = []
    for _ in range(9):  # other tests may take the processor meanwhile
        one = machine(5.0)
        began = time.monotonic()
        given = one.wait()
        assert given == pytest.approx(time.monotonic() - began, abs=0.2)
        assert (lines(one) == []) == (one.busiest == {})
        waited.append((given, len(lines(one))))
    assert any(given < 2 and told == 0 for given, told in waited)


def test_it_waits_while_a_program_runs_and_then_goes_on() -> None:
    one = machine(60.0)
    needs_quiet()
    with busy_child(ONE, seconds=2.0):
        began = time.monotonic()
        one.wait()
    assert 1.0 < time.monotonic() - began < 60
    assert one.lost_s == pytest.approx(time.monotonic() - began, abs=0.5)


def test_the_program_is_named_once_with_the_share_of_a_core() -> None:
    one = machine(3.0)
    with busy_child(ONE):
        one.wait()
    (line,) = lines(one)
    assert line.startswith("waiting for a quiet machine: ")
    assert "python" in line and "% of a core)" in line
    assert any(name.startswith("python") and cores > 0.2 for name, cores in one.busiest.items())


def test_it_never_waits_longer_than_its_seconds_and_goes_on_all_the_same() -> None:
    one = machine(1.5)
    with busy_child(ONE):
        began = time.monotonic()
        given = one.wait()
        assert 1.5 <= time.monotonic() - began < 5
    assert given == pytest.approx(1.5)
    assert one.left_s == 0


def test_between_two_bursts_a_moment_is_enough_and_a_burst_is_waited_for() -> None:
    needs_quiet()
    window = window_seconds(1)

    def took(wait_for: Callable[[QuietMachine], float], burst: float) -> float:
        one = machine(60.0)
        with ExitStack() as stack:
            if burst:
                stack.enter_context(busy_child(ONE, seconds=burst))
            return wait_for(one)

    # other programs of the machine may make any single one of them longer
    assert min(took(QuietMachine.wait_for_idle_gap, 0) for _ in range(9)) < 0.6 * window
    assert min(took(QuietMachine.wait, 0) for _ in range(9)) >= window
    assert 0.3 < min(took(QuietMachine.wait_for_idle_gap, 0.5) for _ in range(4)) < 0.8


def test_a_worker_of_this_process_is_not_another_program() -> None:
    with Child(lambda: wait(1.0), LIMITS) as worker:
        seen = {pid for pid, _ in program_seconds()}
    assert worker.process.pid not in seen and os.getpid() not in seen
    assert seen


def test_what_is_left_is_for_all_waits_together() -> None:
    one = machine(1.0)
    with busy_child(ONE):
        first = one.wait()
        began = time.monotonic()
        assert one.wait() == 0
        assert time.monotonic() - began < 0.1
    assert first == pytest.approx(1.0)


def test_no_more_is_given_back_than_is_left() -> None:
    one = machine(10.0)
    assert (one.lose(4.0), one.left_s) == (4.0, 6.0)
    assert (one.lose(8.0), one.left_s) == (6.0, 0.0)
    assert one.lose(1.0) == 0
    assert one.lost_s == 13.0


def test_without_any_seconds_nothing_is_looked_at() -> None:
    one = machine(0.0)
    with busy_child(ONE):
        began = time.monotonic()
        assert one.wait() == 0
    assert time.monotonic() - began < 1
    assert (lines(one), one.busiest) == ([], {})


def test_the_loudest_three_are_kept_with_the_most_that_they_used() -> None:
    one = machine(10.0)
    one.remember([Program("a", 0.5), Program("b", 0.9), Program("c", 0.1)])
    one.remember([Program("a", 0.2), Program("d", 0.7), Program("c", 0.6)])
    assert one.busiest == {"b": 0.9, "d": 0.7, "c": 0.6}
    assert list(one.busiest) == ["b", "d", "c"]


def test_foreign_cores_are_those_of_the_named_processors() -> None:
    with busy_child(ONE):
        assert foreign_cores([ONE], 0.5) == pytest.approx(1.0, abs=0.15)
    if len(PROCESSORS) > 1:
        began = psutil.cpu_times(percpu=True)[ONE].idle
        free = [foreign_cores([ONE], 0.3) for _ in range(5)]
        idle_s = psutil.cpu_times(percpu=True)[ONE].idle - began
        # unless the other test process had it all the time
        assert min(free) < 0.9 or idle_s < 0.15 * 5 * 0.3


def test_programs_are_told_apart_by_what_they_used_in_between() -> None:
    before = {(1, "a"): 1.0, (2, "b"): 5.0, (3, "c"): 0.0, (4, "d"): 0.0}
    after = {(1, "a"): 2.0, (2, "b"): 5.01, (3, "c"): 1.5, (4, "d"): 0.5, (5, "new"): 9.0}
    assert busiest(before, after, 2.0) == [("c", 0.75), ("a", 0.5), ("d", 0.25)]


def test_of_many_programs_only_the_loudest_are_named() -> None:
    after = {(number, f"p{number}"): float(number) for number in range(10)}
    found = busiest(dict.fromkeys(after, 0.0), after, 10.0)
    assert [one.name for one in found] == ["p9", "p8", "p7"]
    assert len(found) == LOUDEST


def test_every_process_but_this_one_is_among_the_programs() -> None:
    with busy_child(ONE) as child:
        found = {number: name for number, name in program_seconds()}
        assert found[child.pid].startswith("python")
        assert psutil.Process().pid not in found
        assert short_name(child) == found[child.pid]


def test_an_interpreter_is_named_with_what_it_runs(tmp_path: Path) -> None:
    script = tmp_path / "training.py"
    script.write_text("import time; print(flush=True); time.sleep(60)")
    with psutil.Popen(["python3", str(script)], stdout=-1) as program:
        program.stdout.readline()
        name = short_name(psutil.Process(program.pid))
        program.kill()
    assert name.startswith("python") and name.endswith(" training.py")


def test_a_program_that_is_an_argument_itself_is_not_printed() -> None:
    with busy_child(ONE) as child:
        assert short_name(child) == child.name()


def test_programs_in_words_have_whole_percents() -> None:
    programs = [Program("a", 0.974), Program("b c", 1.5)]
    assert in_words(programs) == "a (97 % of a core), b c (150 % of a core)"
