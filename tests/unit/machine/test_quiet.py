"""Waiting for other programs to leave the processors alone: what the kernel counts is played."""

import io
import os
import re
import signal
import subprocess
import time
from contextlib import ExitStack
from pathlib import Path

import psutil
import pytest
from busy import PROCESSORS, busy_child, wait
from tightrope.jobs.child import Child
from tightrope.machine import counters, interference
from tightrope.machine.processes import family
from tiny_model import LIMITS

ONE = PROCESSORS[-1]


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
