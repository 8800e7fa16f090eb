"""Wait until other programs leave the processors idle, and report the busiest ones."""

import math
import multiprocessing
import os
import time
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple, TextIO

import psutil

from tightrope.machine.foreign_load import IDLE, counted_seconds
from tightrope.machine.interference import window_seconds

# cores that other programs may use on a quiet machine
QUIET_CORES = 0.25
# the same for a short sample, which clock ticks make less exact
GAP_CORES = 0.5
# interval between two samples of running programs
LOOK_SECONDS = 0.5
# what the jobs of a run have lost so far, a line each time, and whether one has said so
OF_RUN, TOLD = Path(".snakemake/quiet_seconds"), "told"
LOUDEST = 3
# programs below this number of cores are not reported
NAMED_CORES = 0.05
INTERPRETERS = ("python", "java", "node")
# options that take the program text as an argument
INLINE = ("-c", "-e")


class Program(NamedTuple):
    """A running program and the number of cores it used."""

    name: str
    cores: float


class QuietMachine:
    """Time budget that a job may lose to other load before it continues regardless.

    `seconds` is the budget, `processors` those that must be quiet; messages about waiting go to
    `terminal`. The jobs of a run share it through the file `run`, as far as they see the same one,
    and only the first of them that waits says so. `lost_s` is the time lost so far, to waiting and
    to disturbed pairs. `busiest` maps the names of the busiest programs to the most cores that each
    used.
    """

    def __init__(
        self, processors: list[int], seconds: float, terminal: TextIO, run: Path | None = None
    ) -> None:
        self.processors = processors
        self.run = run
        lost = run.read_text().split() if run and run.is_file() else []
        self.told = TOLD in lost
        self.seconds = max(0.0, seconds - sum(float(one) for one in lost if one != TOLD))
        self.terminal = terminal
        self.lost_s = 0.0
        self.busiest: dict[str, float] = {}
        self.seen: dict[tuple[int, str], float] = {}
        self.looked = -math.inf

    @property
    def left_s(self) -> float:
        """Return the rest of the time budget."""
        return max(0.0, self.seconds - self.lost_s)

    def lose(self, seconds: float) -> float:
        """Count `seconds` as lost; return the part that the budget gives back to the job."""
        given = min(seconds, self.left_s)
        self.lost_s += seconds
        self.note(f"{given:.3f}")
        if given and not self.left_s:
            words = "the machine stays busy: it is measured as it is, without waiting further"
            print(f"{words} (latency.quiet_seconds)", file=self.terminal, flush=True)
        return given

    def wait(self) -> float:
        """Wait until the processors are quiet or the budget is spent; return seconds given back.

        Nothing of this job may run meanwhile.
        """
        return self.wait_until(window_seconds(len(self.processors)), QUIET_CORES)

    def wait_for_idle_gap(self) -> float:
        """Wait as `wait` does, but for a shorter quiet time, such as the gap between two bursts."""
        return self.wait_until(window_seconds(len(self.processors)) / 5, GAP_CORES)

    def wait_until(self, look_seconds: float, cores: float) -> float:
        """Wait until at most `cores` are in use for `look_seconds`; return seconds given back."""
        began, busy = time.monotonic(), False
        while self.left_s > time.monotonic() - began:
            if foreign_cores(self.processors, look_seconds) <= cores:
                break
            busy = True
            self.look_at_programs(began)
        waited = time.monotonic() - began
        return self.lose(waited) if busy else min(waited, self.left_s)

    def look_at_programs(self, began: float) -> None:
        """Record the busiest programs since the last look, and report them the first time.

        The wait `began` at that moment of the monotonic clock.
        """
        now = time.monotonic()
        if now - self.looked < LOOK_SECONDS:
            return
        used = program_seconds()
        programs = busiest(self.seen, used, now - self.looked)
        self.seen, self.looked = used, now
        for one in programs:
            self.busiest[one.name] = max(self.busiest.get(one.name, 0.0), one.cores)
        first = sorted(self.busiest, key=lambda name: -self.busiest[name])[:LOUDEST]
        self.busiest = {name: self.busiest[name] for name in first}
        if programs and not self.told:
            rest = max(0.0, self.left_s - (now - began))
            words = (
                f"waiting for a quiet machine: {in_words(programs)}; for at most {rest:.0f} s more "
                f"{'in this run ' if self.run else ''}(latency.quiet_seconds)"
            )
            print(words, file=self.terminal, flush=True)
            self.told = True
            self.note(TOLD)

    def note(self, word: str) -> None:
        """Add a word to the file of the run, if there is one."""
        if self.run:
            with suppress(OSError), self.run.open("a") as file:
                print(word, file=file)


def foreign_cores(processors: list[int], seconds: float) -> float:
    """Return the cores of these processors in use while this process sleeps for `seconds`."""
    began, idle = time.monotonic(), counted_seconds(processors, IDLE)
    time.sleep(seconds)
    elapsed = time.monotonic() - began
    return len(processors) - (counted_seconds(processors, IDLE) - idle) / elapsed


def program_seconds() -> dict[tuple[int, str], float]:
    """Return CPU seconds of processes by id and short name, except this one and its workers."""
    found, own = {}, {os.getpid(), *(one.pid for one in multiprocessing.active_children())}
    for process in psutil.process_iter():
        with suppress(psutil.Error):
            if process.pid not in own:
                times = process.cpu_times()
                found[process.pid, short_name(process)] = times.user + times.system
    return found


def short_name(process: psutil.Process) -> str:
    """Return the program name, and for an interpreter also the file or module that it runs."""
    name, words = process.name(), process.cmdline()[1:3]
    if not name.startswith(INTERPRETERS) or set(INLINE) & set(words):
        return name
    files = (Path(word).name for word in words if not word.startswith("-"))
    return " ".join([name, *list(files)[:1]])


def busiest(
    before: dict[tuple[int, str], float], after: dict[tuple[int, str], float], seconds: float
) -> list[Program]:
    """Return the programs that used the most cores in between, in descending order."""
    used = [
        Program(key[1], (total - before[key]) / seconds)
        for key, total in after.items()
        if key in before
    ]
    used = [one for one in used if one.cores >= NAMED_CORES]
    return sorted(used, key=lambda one: -one.cores)[:LOUDEST]


def in_words(programs: Iterable[Program]) -> str:
    """Format the programs with the share of a core that each used."""
    return ", ".join(f"{one.name} ({100 * one.cores:.0f} % of a core)" for one in programs)
