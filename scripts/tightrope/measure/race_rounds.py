"""Time engines in rounds, one block of each in random order, until the fastest is known."""

import random
import time
from collections.abc import Mapping
from contextlib import ExitStack
from typing import Any

from tightrope.errors import WorkFailed
from tightrope.jobs.child import Child, Limits
from tightrope.jobs.progress import ProgressBar
from tightrope.machine.foreign_load import own_seconds
from tightrope.machine.interference import Windows, of_pair
from tightrope.machine.quiet import QuietMachine
from tightrope.measure.blocks import Plan, Stopwatch, block_sizes, lost_to_other_load
from tightrope.measure.timed_engine import TimedEngine
from tightrope.records.finalists import Finalists
from tightrope.records.race import (
    NONE_FASTER,
    TIME_LIMIT,
    all_equal,
    beaten_by,
    is_decided,
    leader,
    none_faster,
)

# fewest rounds of each load, and rounds before the first look
FEWEST_OF_LOAD = 6
# factor between the numbers of rounds of two consecutive looks
LOOK_FACTOR = 1.5

Facts = dict[str, Any]


class RaceAtShape:
    """Blocks of the finalists at one shape, and the finalists that are eliminated or failed.

    Engines whose times differ by at most the share `within` are equal.
    """

    def __init__(self, index: int, finalists: Finalists, within: float) -> None:
        self.index = index
        self.finalists = finalists
        self.within = within
        names = finalists.names
        self.blocks: dict[str, list[list[float] | None]] = {name: [] for name in names}
        self.facts: dict[str, list[Facts | None]] = {name: [] for name in names}
        self.loads: list[int] = []
        self.foreign_cores: list[float | None] = []
        self.out: dict[str, Facts] = {}
        self.dead: set[str] = set()
        self.looks, self.next_look = 0, FEWEST_OF_LOAD
        self.stop: str | None = None
        # more rounds with this load would add little: the result needs the second load
        self.other_load = False
        self.seconds = 0.0
        self.draw = random.Random(index)

    def recorded(self) -> Facts:
        """Return the fields of the record.

        `contenders` and `pairs` are those of `Finalists`. `blocks_s` (seconds per call) and `facts`
        (see `interference.of_pair`) have an entry per variant and round, None where the variant did
        not run; `loads` has the load of each round. `out` maps an eliminated variant to the number
        of the `round` and to the significantly faster variant (`by`).
        """
        return {
            "contenders": self.finalists.contenders,
            "pairs": [list(pair) for pair in self.finalists.pairs],
            "blocks_s": self.blocks,
            "facts": self.facts,
            "loads": self.loads,
            "foreign_cores": self.foreign_cores,
            "out": self.out,
            "stop": self.stop,
            "seconds": self.seconds,
        }

    def contenders(self) -> list[str]:
        """Return the contenders that may still win."""
        gone = self.dead | set(self.out)
        return [name for name in self.finalists.contenders if name not in gone]

    def running(self) -> list[str]:
        """Return the engines of the next round: remaining contenders and undecided pairs."""
        still = set(self.contenders())
        shape = self.recorded()
        for pair in self.finalists.pairs:
            if not self.dead & set(pair) and not is_decided(shape, pair, self.within):
                still |= set(pair)
        names = [name for name in self.blocks if name in still]
        return names if len(names) > 1 else []

    def begins_look(self) -> bool:
        """Return whether there are enough rounds for a look, which then counts as taken."""
        if len(self.loads) < self.next_look:
            return False
        self.looks += 1
        self.next_look = int(LOOK_FACTOR * len(self.loads)) + 1
        return True

    def look(self) -> None:
        """After enough rounds, eliminate significantly slower engines; stop if all is decided."""
        if not self.begins_look():
            return
        shape = self.recorded()
        for loser, winner in beaten_by(shape, self.contenders(), self.looks).items():
            self.out[loser] = {"round": len(self.loads), "by": winner}
        names = self.contenders()
        if not self.running():
            self.stop = "one left"
        elif set(self.running()) == set(names) and leader(shape, names):
            if all_equal(shape, names, self.within):
                self.stop = "equal"
            elif none_faster(shape, names, self.within):
                self.stop = NONE_FASTER
            else:
                self.other_load = none_faster(shape, names, self.within, loads=2)

    def finish(self) -> None:
        """Take a last look that includes the latest rounds, and set the reason `stop`."""
        if self.stop is None and self.loads:
            self.next_look = len(self.loads)
            self.look()
        self.stop = self.stop or (TIME_LIMIT if self.running() else "one left")

    def bury(self, name: str) -> None:
        """Remove a failed engine; engines that it had eliminated return."""
        self.dead.add(name)
        back = [loser for loser, one in self.out.items() if one["by"] == name]
        for loser in back:
            del self.out[loser]
        if back:
            self.stop = None

    def keep(self, round_blocks: Mapping[str, Facts], load: int, window: int, threads: int) -> None:
        """Record a round: blocks by variant."""
        self.loads.append(load)
        for name in self.blocks:
            block = round_blocks.get(name)
            self.blocks[name].append(block["samples_s"] if block else None)
            self.facts[name].append(of_pair([block], threads, window) if block else None)


class Race:
    """Races of the same engines, by variant, at several shapes.

    `plan` holds the `latency` settings; `seconds` is `decision.seconds`, for all shapes and both
    loads. `died` maps a failed engine to its reason.
    """

    def __init__(
        self,
        engines: Mapping[str, TimedEngine],
        races: list[RaceAtShape],
        plan: Plan,
        *,
        seconds: float,
        threads: int,
        limits: Limits,
        machine: QuietMachine,
    ) -> None:
        self.engines = engines
        self.races = races
        self.plan = plan
        self.seconds = seconds
        self.threads = threads
        self.limits = limits
        self.machine = machine
        self.died: dict[str, str] = {}
        self.workers: dict[str, Child] = {}

    def run(self) -> None:
        """Run both loads, one process per engine and load; the second load is in reversed order."""
        began = time.monotonic()
        self.deadline = began + self.seconds
        with ProgressBar("racing", self.seconds) as self.bar:
            self.run_loads(began)
        for race in self.races:
            race.finish()

    def run_loads(self, began: float) -> None:
        """Load the engines twice, and run rounds at each shape with each load."""
        for load in (0, 1):
            open_races = [race for race in self.races if race.stop is None and race.running()]
            names = {name for race in open_races for name in race.running()}
            order = [name for name in self.engines if name in names]
            with ExitStack() as stack:
                for name in order[:: -1 if load else 1]:
                    self.load(name, stack, began)
                self.deadline += self.machine.wait()
                for place, race in enumerate(open_races):
                    left = (len(self.races) if load == 0 else 0) + len(open_races) - place
                    self.rounds(race, load, (self.deadline - time.monotonic()) / left)
            self.workers.clear()

    def load(self, name: str, stack: ExitStack, began: float) -> None:
        """Load an engine in a process of its own, whose time counts from `began`."""
        try:
            child = Child(self.engines[name], self.limits, f"{name}: ", began)
        except WorkFailed as error:  # this job has ended before
            return self.bury(name, error)
        self.workers[name] = stack.enter_context(child)
        self.asked(name, "load")

    def rounds(self, race: RaceAtShape, load: int, seconds: float) -> None:
        """Run rounds at one shape with one load for `seconds`, at least `FEWEST_OF_LOAD` rounds.

        The first load ends early where only the second load can add information.
        """
        began, first = time.monotonic(), len(race.loads)
        clocks = self.warmed_up(race)
        windows = Windows(self.machine.processors, self.cpu_seconds)
        windows.cores = race.foreign_cores
        while race.stop is None and len(names := [n for n in race.running() if n in clocks]) > 1:
            done = len(race.loads) - first
            over = time.monotonic() - began > seconds or (load == 0 and race.other_load)
            if done >= FEWEST_OF_LOAD and over:
                break
            self.one_round(race, clocks, names, load, windows.index)
            given = lost_to_other_load(windows, self.machine)
            began, self.deadline = began + given, self.deadline + given
            race.look()
            self.bar.reach(self.seconds - (self.deadline - time.monotonic()))
        windows.close_when_due(last=True)
        race.seconds += time.monotonic() - began

    def warmed_up(self, race: RaceAtShape) -> dict[str, Stopwatch]:
        """Return a stopwatch per engine still running, after its first call and warm-up."""
        clocks = {}
        for name in race.running():
            if name not in self.workers or self.asked(name, "first_call", race.index) is None:
                continue
            seen = [block for block in race.blocks[name] if block is not None]
            clocks[name] = Stopwatch(self.workers[name], self.plan["max_seconds"], seen)
            try:
                clocks[name].warm_up(race.index, self.plan)
            except WorkFailed as error:
                self.bury(name, error)
        return clocks

    def one_round(
        self,
        race: RaceAtShape,
        clocks: dict[str, Stopwatch],
        names: list[str],
        load: int,
        window: int,
    ) -> None:
        """Measure a block of each engine, in random order."""
        seconds, calls = block_sizes(self.plan | {"calls": None})
        blocks = {}
        for name in race.draw.sample(names, len(names)):
            try:
                blocks[name] = clocks[name].block(race.index, seconds, calls[0])
            except WorkFailed as error:
                self.bury(name, error)
        race.keep(blocks, load, window, self.threads)

    def asked(self, name: str, *request: Any) -> Any:
        """Return the answer of an engine; if it fails, remove it and return None."""
        try:
            return self.workers[name].ask(*request)
        except WorkFailed as error:
            self.bury(name, error)
            return None

    def cpu_seconds(self) -> float:
        """Return the CPU seconds of this process and of its engines, running or ended."""
        answers = [self.asked(name, "cpu_seconds") for name in list(self.workers)]
        return own_seconds() + sum(seconds for seconds in answers if seconds is not None)

    def bury(self, name: str, error: WorkFailed) -> None:
        """Remove a failed engine at every shape; the others continue."""
        self.died[name] = error.reason.removeprefix(f"{name}: ")
        if (worker := self.workers.pop(name, None)) is not None:
            worker.kill()
            worker.process.join()  # `own_seconds` counts a child only once it has been joined
        for race in self.races:
            race.bury(name)
