"""What was measured of the finalists of one shape, and who of them is still in."""

import random
from collections.abc import Mapping
from typing import Any

from tightrope.machine.interference import of_pair
from tightrope.records.finalists import Finalists
from tightrope.records.race_statistics import (
    NONE_FASTER,
    TIME_LIMIT,
    all_equal,
    beaten_by,
    is_decided,
    leader,
    none_faster,
)

# rounds with each load before anything is stopped, and before the first look
FEWEST_OF_LOAD = 6
# each look comes after so many times the rounds of the last
LOOK_FACTOR = 1.5

Facts = dict[str, Any]


class RaceAtShape:
    """What was measured of the finalists of one shape, and who of them is still in.

    `within` is the share within which two engines are equal.
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
        # more rounds with this load would say little: the other one is what is missing
        self.other_load = False
        self.seconds = 0.0
        self.draw = random.Random(index)

    def recorded(self) -> Facts:
        """What a record keeps.

        `contenders` and `pairs`; by variant the `blocks_s` (seconds of each call) and `facts` (see
        `interference.of_pair`) of each round, None where it did not run; `loads`, the load of each
        round; `out`, by variant after which `round` it was surely slower and than whom (`by`).
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
        """Who may still win."""
        gone = self.dead | set(self.out)
        return [name for name in self.finalists.contenders if name not in gone]

    def running(self) -> list[str]:
        """Who takes part in the next round: who may still win, and undecided pairs."""
        still = set(self.contenders())
        shape = self.recorded()
        for pair in self.finalists.pairs:
            if not self.dead & set(pair) and not is_decided(shape, pair, self.within):
                still |= set(pair)
        names = [name for name in self.blocks if name in still]
        return names if len(names) > 1 else []

    def look(self) -> None:
        """After enough rounds: put out who is surely slower, and stop where nothing is open."""
        if len(self.loads) < self.next_look:
            return
        self.looks += 1
        self.next_look = int(LOOK_FACTOR * len(self.loads)) + 1
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
        """A last look, with the rounds since the one before it; `stop` says why it ended."""
        if self.stop is None and self.loads:
            self.next_look = len(self.loads)
            self.look()
        self.stop = self.stop or (TIME_LIMIT if self.running() else "one left")

    def bury(self, name: str) -> None:
        """Put out an engine that failed; who was out for it alone is in again."""
        self.dead.add(name)
        back = [loser for loser, one in self.out.items() if one["by"] == name]
        for loser in back:
            del self.out[loser]
        if back:
            self.stop = None

    def keep(self, round_blocks: Mapping[str, Facts], load: int, window: int, threads: int) -> None:
        """Keep a round of blocks, by variant."""
        self.loads.append(load)
        for name in self.blocks:
            block = round_blocks.get(name)
            self.blocks[name].append(block["samples_s"] if block else None)
            self.facts[name].append(of_pair([block], threads, window) if block else None)
