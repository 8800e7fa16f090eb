"""Wait until other programs leave the processors alone, and say who keeps them busy."""

import math
import multiprocessing
import os
import time
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple, TextIO

import psutil

from tightrope.machine.foreign_load import idle_seconds
from tightrope.machine.interference import window_seconds

# cores that other programs may use of the processors of a quiet machine
QUIET_CORES = 0.25
# the same for a look that is so short that ticks blur it
GAP_CORES = 0.5
# between two looks at who runs
LOOK_SECONDS = 0.5
# between two lines on the terminal
SAY_SECONDS = 15.0
LOUDEST = 3
# a program that uses less of a core is not named
NAMED_CORES = 0.05
INTERPRETERS = ("python", "java", "node")
# before a program that is an argument itself
INLINE = ("-c", "-e")


class Program(NamedTuple):
    """A program that ran, and how many cores it used."""

    name: str
    cores: float


class QuietMachine:
    """The time that a job may lose to other load before it goes on all the same.

    `seconds` is that time, `processors` those that must be quiet; lines about waiting go to
    `terminal`. `lost_s` is what was lost so far: waiting, and pairs that were disturbed. `loudest`
    are the cores that the loudest programs used at most, by name.
    """

    def __init__(self, processors: list[int], seconds: float, terminal: TextIO) -> None:
        self.processors = processors
        self.seconds = seconds
        self.terminal = terminal
        self.lost_s = 0.0
        self.loudest: dict[str, float] = {}
        self.seen: dict[tuple[int, str], float] = {}
        self.looked = self.said = -math.inf

    @property
    def left_s(self) -> float:
        """How much more may be lost."""
        return max(0.0, self.seconds - self.lost_s)

    def lose(self, seconds: float) -> float:
        """Count so much time as lost; gives how much of it the job may be given back."""
        given = min(seconds, self.left_s)
        self.lost_s += seconds
        return given

    def remember(self, programs: Iterable[Program]) -> None:
        """Keep the loudest of these and of those that were seen before."""
        for one in programs:
            self.loudest[one.name] = max(self.loudest.get(one.name, 0.0), one.cores)
        first = sorted(self.loudest, key=lambda name: -self.loudest[name])[:LOUDEST]
        self.loudest = {name: self.loudest[name] for name in first}

    def wait(self) -> float:
        """Come back when the processors are quiet, or when no time is left; seconds given back.

        Nothing of this job may run meanwhile.
        """
        return self.wait_until(window_seconds(len(self.processors)), QUIET_CORES)

    def wait_for_a_gap(self) -> float:
        """As `wait`, but a moment is enough: between two bursts there may be no more."""
        return self.wait_until(window_seconds(len(self.processors)) / 5, GAP_CORES)

    def wait_until(self, look_seconds: float, cores: float) -> float:
        """Wait until no more `cores` are in use for so long; seconds given back."""
        began = time.monotonic()
        while self.left_s > time.monotonic() - began:
            if foreign_cores(self.processors, look_seconds) <= cores:
                break
            self.look_at_programs()
        return self.lose(time.monotonic() - began)

    def look_at_programs(self) -> None:
        """Once in a while: remember the loudest since the last look, and name them."""
        now = time.monotonic()
        if now - self.looked < LOOK_SECONDS:
            return
        used = program_seconds()
        programs = loudest(self.seen, used, now - self.looked)
        self.seen, self.looked = used, now
        self.remember(programs)
        if programs and now - self.said >= SAY_SECONDS:
            words = f"waiting for a quiet machine: {in_words(programs)}"
            print(words, file=self.terminal, flush=True)
            self.said = now


def foreign_cores(processors: list[int], seconds: float) -> float:
    """Cores of these processors that were in use while this process slept for so long."""
    began, idle = time.monotonic(), idle_seconds(processors)
    time.sleep(seconds)
    elapsed = time.monotonic() - began
    return len(processors) - (idle_seconds(processors) - idle) / elapsed


def program_seconds() -> dict[tuple[int, str], float]:
    """CPU seconds of every process but this one and its workers, by its id and a short name."""
    found, own = {}, {os.getpid(), *(one.pid for one in multiprocessing.active_children())}
    for process in psutil.process_iter():
        with suppress(psutil.Error):
            if process.pid not in own:
                times = process.cpu_times()
                found[process.pid, short_name(process)] = times.user + times.system
    return found


def short_name(process: psutil.Process) -> str:
    """The program, and of an interpreter the file or module that it runs, without folders."""
    name, words = process.name(), process.cmdline()[1:3]
    if not name.startswith(INTERPRETERS) or set(INLINE) & set(words):
        return name
    files = (Path(word).name for word in words if not word.startswith("-"))
    return " ".join([name, *list(files)[:1]])


def loudest(
    before: dict[tuple[int, str], float], after: dict[tuple[int, str], float], seconds: float
) -> list[Program]:
    """The programs that used the most in between, the most first."""
    used = [
        Program(key[1], (total - before[key]) / seconds)
        for key, total in after.items()
        if key in before
    ]
    used = [one for one in used if one.cores >= NAMED_CORES]
    return sorted(used, key=lambda one: -one.cores)[:LOUDEST]


def in_words(programs: Iterable[Program]) -> str:
    """The programs with the share of a core that each used."""
    return ", ".join(f"{one.name} ({100 * one.cores:.0f} % of a core)" for one in programs)
