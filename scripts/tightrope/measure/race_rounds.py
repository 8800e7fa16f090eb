"""Time engines in rounds, one block of each in random order, until the fastest is known."""

import random
import time
from collections.abc import Mapping

from tightrope.decide.finalists import Finalists
from tightrope.errors import WorkFailed
from tightrope.jobs.child import Limits
from tightrope.jobs.progress import ProgressBar
from tightrope.machine.interference import Block, QuietMachine, of_pair
from tightrope.measure.rounds import Clocks, Plan, Running, block_seconds
from tightrope.measure.timed_engine import TimedEngine
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

    Engines whose times differ by at most the share `within` are equal. `plan` holds the `latency`
    settings; engines have so many `threads`.
    """

    def __init__(
        self,
        index: int,
        shape: RacedShape,
        finalists: Finalists,
        within: float,
        plan: Plan,
        threads: int,
    ) -> None:
        self.index, self.shape, self.within = index, shape, within
        self.threads, self.block_s = threads, block_seconds(plan)
        shape.contenders, shape.pairs = finalists
        shape.blocks_s = {name: [] for name in finalists.names}
        shape.facts = {name: [] for name in finalists.names}
        self.dead: set[str] = set()
        self.looks, self.next_look = 0, FEWEST_OF_LOAD
        # more rounds with this load would add little: the result needs the second load
        self.other_load = False
        self.draw = random.Random(index)
        self.begin(0, 0.0)

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

    def begin(self, load: int, seconds: float) -> None:
        """Begin the rounds of a load, at least `FEWEST_OF_LOAD` of them, for `seconds`."""
        self.load, self.seconds, self.first = load, seconds, len(self.shape.loads)

    def next_round(self, ready: Clocks, seconds: float) -> dict[str, int]:
        """Return a call of each engine of the next round, nothing at the end of this load.

        The first load ends early where only the second load can add information.
        """
        names = [name for name in self.running() if name in ready]
        over = seconds > self.seconds or (self.load == 0 and self.other_load)
        enough = len(self.shape.loads) - self.first >= FEWEST_OF_LOAD and over
        ended = self.shape.stop is not None or enough or len(names) < 2
        return {} if ended else dict.fromkeys(names, 1)

    def keep(self, blocks: Mapping[str, Block], window: int) -> None:
        """Record a round: blocks by variant; `window` is the index in `foreign_cores`."""
        self.shape.loads.append(self.load)
        for name, known in self.shape.blocks_s.items():
            block = blocks.get(name)
            known.append(block.samples_s if block else None)
            facts = of_pair([block], self.threads, window) if block else None
            self.shape.facts[name].append(facts)


class Race(Running):
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
        limits: Limits,
        machine: QuietMachine,
    ) -> None:
        super().__init__(engines, limits, machine)
        self.races, self.plan, self.seconds = races, plan, seconds
        self.died: dict[str, str] = {}

    def run(self) -> None:
        """Run both loads, one process per engine and load; the second load is in reversed order."""
        began = time.monotonic()
        self.deadline = began + self.seconds
        with ProgressBar("racing", self.seconds) as self.bar:
            for load in (0, 1):
                self.run_load(load, began)
        for race in self.races:
            race.finish()

    def run_load(self, load: int, began: float) -> None:
        """Load the engines that still run, and run rounds at each shape.

        The shapes that are left share the rest of the time, those of the second load too.
        """
        open_races = [one for one in self.races if one.shape.stop is None and one.running()]
        names = {name for race in open_races for name in race.running()}
        order = [name for name in self.engines if name in names]
        with self.loaded(order[:: -1 if load else 1], began):
            self.deadline += self.machine.wait()
            for place, race in enumerate(open_races):
                left = (len(self.races) if load == 0 else 0) + len(open_races) - place
                shape, since = race.shape, time.monotonic()
                race.begin(load, (self.deadline - since) / left)
                clocks = self.warmed_up(race.running(), race.index, self.plan, shape.blocks_s)
                for given in self.rounds(race, clocks, shape.foreign_cores, since):
                    since, self.deadline = since + given, self.deadline + given
                    race.look()
                    self.bar.reach(self.seconds - (self.deadline - time.monotonic()))
                shape.seconds += time.monotonic() - since

    def failed(self, name: str, error: WorkFailed) -> None:
        """Remove a failed engine at every shape; the others continue."""
        self.died[name] = error.reason
        if (worker := self.workers.pop(name, None)) is not None:
            worker.kill()
            worker.process.join()  # `own_seconds` counts a child only once it has been joined
        for race in self.races:
            race.bury(name)
