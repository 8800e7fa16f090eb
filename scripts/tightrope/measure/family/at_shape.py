"""Rounds at one shape until the ratios of all pairs are known."""

from tightrope.measure.race.at_shape import RaceAtShape
from tightrope.records.race import ratio

# why the rounds ended before the time limit
PRECISE = "precise"


class FamilyAtShape(RaceAtShape):
    """Blocks of the engines at one shape; none is eliminated, because each ratio is a result.

    The rounds end when the interval of each pair is no wider than the share `within` on each side.
    """

    def running(self) -> list[str]:
        """Return the engines of the next round: all that have not failed."""
        names = [name for name in self.blocks if name not in self.dead]
        return names if len(names) > 1 else []

    def look(self) -> None:
        """After enough rounds, stop if all ratios are known precisely."""
        if not self.begins_look():
            return
        if self.is_precise():
            self.stop = PRECISE
        else:
            self.other_load = self.is_precise(loads=2)

    def is_precise(self, *, loads: int | None = None) -> bool:
        """Return whether all ratios are precise, or would be if the rounds had so many loads."""
        shape = self.recorded()
        pairs = [pair for pair in self.finalists.pairs if not self.dead & set(pair)]
        found = [ratio(shape, *pair, loads=loads) for pair in pairs]
        return all(one is not None and one.high <= (1 + self.within) * one.value for one in found)
