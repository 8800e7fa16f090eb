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
from tightrope.machine.interference import Block, Windows, of_pair
from tightrope.machine.quiet import QuietMachine
from tightrope.measure.blocks import Plan, Stopwatch, block_sizes, lost_to_other_load
from tightrope.measure.timed_engine import TimedEngine
from tightrope.records.finalists import Finalists
from tightrope.records.race import (
    NONE_FASTER,
    TIME_LIMIT,
    Elimination,
    RacedShape,
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


class RaceAtShape:
    """Fills in a `shape` of the record with rounds, and knows which of its finalists failed.

    Engines whose times differ by at most the share `within` are equal.
    """

    def __init__(self, index: int, shape: RacedShape, finalists: Finalists, within: float) -> None:
        self.index, self.shape, self.within = index, shape, within
        shape.contenders, shape.pairs = finalists
        shape.blocks_s = {name: [] for name in finalists.names}
        shape.facts = {name: [] for name in finalists.names}
        self.dead: set[str] = set()
        self.looks, self.next_look = 0, FEWEST_OF_LOAD
        # more rounds with this load would add little: the result needs the second load
        self.other_load = False
        self.draw = random.Random(index)

    def contenders(self) -> list[str]:
        """Return the contenders that may still win."""
        gone = self.dead | set(self.shape.out)
        return [name for name in self.shape.contenders if name not in gone]

    def running(self) -> list[str]:
        """Return the engines of the next round: remaining contenders and undecided pairs."""
        still = set(self.contenders())
        for pair in self.shape.pairs:
            if not self.dead & set(pair) and not is_decided(self.shape, pair, self.within):
                still |= set(pair)
        names = [name for name in self.shape.blocks_s if name in still]
        return names if len(names) > 1 else []

    def look(self) -> None:
        """After enough rounds, decide what they show."""
        rounds = len(self.shape.loads)
        if rounds >= self.next_look:
            self.looks += 1
            self.next_look = int(LOOK_FACTOR * rounds) + 1
            self.decide()

    def decide(self) -> None:
        """Eliminate significantly slower engines; stop if all is decided."""
        shape = self.shape
        for loser, winner in beaten_by(shape, self.contenders(), self.looks).items():
            shape.out[loser] = Elimination(round=len(shape.loads), by=winner)
        names = self.contenders()
        if not self.running():
            shape.stop = "one left"
        elif set(self.running()) == set(names) and leader(shape, names):
            if all_equal(shape, names, self.within):
                shape.stop = "equal"
            elif none_faster(shape, names, self.within):
                shape.stop = NONE_FASTER
            else:
                self.other_load = none_faster(shape, names, self.within, loads=2)

    def finish(self) -> None:
        """Take a last look that includes the latest rounds, and set the reason `stop`."""
        shape = self.shape
        if shape.stop is None and shape.loads:
            self.next_look = len(shape.loads)
            self.look()
        shape.stop = shape.stop or (TIME_LIMIT if self.running() else "one left")

    def bury(self, name: str) -> None:
        """Remove a failed engine; engines that it had eliminated return."""
        self.dead.add(name)
        back = [loser for loser, one in self.shape.out.items() if one.by == name]
        for loser in back:
            del self.shape.out[loser]
        if back:
            self.shape.stop = None

    def keep(self, round_blocks: Mapping[str, Block], load: int, window: int, threads: int) -> None:
        """Record a round: blocks by variant."""
        self.shape.loads.append(load)
        for name, blocks in self.shape.blocks_s.items():
            block = round_blocks.get(name)
            blocks.append(block.samples_s if block else None)
            self.shape.facts[name].append(of_pair([block], threads, window) if block else None)


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
            open_races = [one for one in self.races if one.shape.stop is None and one.running()]
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
        began, shape = time.monotonic(), race.shape
        first = len(shape.loads)
        clocks = self.warmed_up(race)
        windows = Windows(self.machine.processors, self.cpu_seconds)
        windows.cores = shape.foreign_cores
        while shape.stop is None and len(names := [n for n in race.running() if n in clocks]) > 1:
            done = len(shape.loads) - first
            over = time.monotonic() - began > seconds or (load == 0 and race.other_load)
            if done >= FEWEST_OF_LOAD and over:
                break
            self.one_round(race, clocks, names, load, windows.index)
            given = lost_to_other_load(windows, self.machine)
            began, self.deadline = began + given, self.deadline + given
            race.look()
            self.bar.reach(self.seconds - (self.deadline - time.monotonic()))
        windows.close_when_due(last=True)
        shape.seconds += time.monotonic() - began

    def warmed_up(self, race: RaceAtShape) -> dict[str, Stopwatch]:
        """Return a stopwatch per engine still running, after its first call and warm-up."""
        clocks = {}
        for name in race.running():
            if name not in self.workers or self.asked(name, "first_call", race.index) is None:
                continue
            seen = [block for block in race.shape.blocks_s[name] if block is not None]
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
