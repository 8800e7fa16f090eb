"""Race at one shape: measured blocks, eliminated finalists, and the end of the race."""

import random
from collections.abc import Mapping
from typing import Any

from tightrope.machine.interference import of_pair
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
