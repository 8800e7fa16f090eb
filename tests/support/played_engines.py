"""Engines that answer at once with what a test planted, each in a real process of its own."""

import json
import math
import os
import signal
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from tightrope.machine.interference import Block, QuietMachine
from tightrope.measure.timed_engine import TimedEngine
from tightrope.records.record import WarmUp

# of a block in which a hypervisor had the processors
STOLEN = {"stolen_s": math.inf}


class Asked(NamedTuple):
    """What a process was asked."""

    name: str
    process: int
    request: str
    arguments: list[Any]


class Played(TimedEngine):
    """Writes down what it is asked; its blocks take the seconds that were planted, and no time.

    `seconds(load, block)` are those of a call, `facts(load, block)` more of a block: `load` counts
    the loads in the journal, `block` the blocks of this process. `before(load, request, count)` is
    called before each answer, `count` is that of such requests. `used_s` CPU seconds are used from
    each time that it is asked for them to the next, with None those that the process really used.
    """

    def __init__(
        self,
        journal: Path,
        name: str,
        seconds: float | Callable[[int, int], float],
        *,
        inputs: int = 1,
        facts: Callable[[int, int], dict[str, Any]] = lambda load, block: {},
        before: Callable[[int, str, int], None] = lambda load, request, count: None,
        used_s: float | None = 0.0,
        run: Any = None,
    ) -> None:
        super().__init__(lambda: (None, {}), [None] * inputs, [])
        self.journal, self.name, self.seconds = journal, name, seconds
        self.facts, self.before, self.run = facts, before, run
        self.used_s, self.place = used_s, 0
        self.counts: Counter[str] = Counter()

    def __call__(self, request: str, *arguments: Any) -> Any:
        with self.journal.open("a") as file:
            file.write(json.dumps(Asked(self.name, os.getpid(), request, list(arguments))) + "\n")
        if request == "load":
            self.place = len(asked(self.journal, "load")) - 1
        self.before(self.place, request, self.counts[request])
        self.counts[request] += 1
        return super().__call__(request, *arguments)

    def load(self) -> dict[str, float]:
        return {"import_s": 1.0 + self.place, "load_s": 2.0}

    def first_call(self, index: int) -> float:
        return 0.5

    def warm_up(self, index: int, calls: int | None, seconds: float, window: float) -> WarmUp:
        made = 3 if calls is None else calls
        return WarmUp(calls=made, seconds=0.0, stable=True if calls is None else None)

    def block(self, index: int, seconds: float, calls: int, limit: float) -> Block:
        number = self.counts["block"] - 1
        each = self.seconds(self.place, number) if callable(self.seconds) else self.seconds
        samples = [each] * max(calls, math.ceil(seconds / each))
        quiet = {"waited_s": 0.0, "preempted": 0, "stolen_s": 0.0}
        known = {"samples_s": samples, "seconds": sum(samples), **quiet}
        return Block(**{**known, **self.facts(self.place, number)})

    def threads(self) -> dict[str, float]:
        return {"busy": 1, "cores": 1.0}

    def cpu_seconds(self) -> float:
        if self.used_s is None:
            return super().cpu_seconds()
        return self.used_s * self.counts["cpu_seconds"]


def asked(journal: Path, *requests: str) -> list[Asked]:
    """What processes were asked, in order: these requests, or all."""
    lines = journal.read_text().splitlines() if journal.exists() else []
    found = [Asked(*json.loads(line)) for line in lines]
    return [one for one in found if not requests or one.request in requests]


def nowhere(seconds: float = 0.0, terminal: Any = None) -> QuietMachine:
    """A machine without processors, which no other program can disturb."""
    return QuietMachine([], seconds, terminal)


def fails(request: str, number: int, then: Callable[[], Any]) -> Callable[[int, str, int], None]:
    """A `before` that does something at such a request of each process."""

    def before(load: int, asked_for: str, count: int) -> None:
        if (asked_for, count) == (request, number):
            then()

    return before


def dies() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def raises() -> None:
    raise RuntimeError("no such operator")


def hangs() -> None:
    time.sleep(600)
