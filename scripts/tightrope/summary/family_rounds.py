"""Times and ratios of the engines of a family at one shape, from the rounds that they shared."""

from dataclasses import dataclass
from typing import Any

from tightrope.records.family import (
    FamilyRecord,
    has_rounds,
    measured_ratio,
    shapes_at,
)
from tightrope.records.race_statistics import FEWEST_ROUNDS, common_rounds
from tightrope.records.rounds import call_seconds
from tightrope.statistics import Interval
from tightrope.summary.noise import causes
from tightrope.summary.ratios import ratio_entry
from tightrope.summary.result_types import Ratio
from tightrope.summary.results import NO_SPEEDUP


@dataclass(frozen=True)
class FamilyRounds:
    """The heats of a record at the shape with index `place`.

    With `accept_disturbed` disturbed rounds count where too few others are left.
    """

    record: FamilyRecord
    place: int
    accept_disturbed: bool

    @property
    def heats(self) -> list[dict[str, Any]]:
        """Return the shape of each heat."""
        return shapes_at(self.record, self.place)

    @property
    def chosen(self) -> dict[str, str]:
        """Return the recommended engine of each model, without those that failed."""
        known: dict[str, str] = self.heats[0]["chosen"]
        return {model: name for model, name in known.items() if name not in self.record.left_out}

    def engine(self, role: str) -> str | None:
        """Return the root's `baseline` or its best `quantized` engine, None if it failed."""
        name: str | None = self.heats[0][role]
        return None if name in self.record.left_out else name

    def interval(self, one: str, other: str) -> Interval | None:
        """Return the speed-up of `one` over `other`, None without enough rounds of both."""
        if one == other:
            return Interval(1.0, 1.0, 1.0)
        found = measured_ratio(self.heats, one, other)
        if found is None and self.accept_disturbed:
            found = measured_ratio(self.heats, one, other, all_rounds=True)
        return found

    def speedup(self, one: str, other: str) -> Ratio | None:
        """Return the entry of the speed-up of `one` over `other`.

        Its numbers are None where it was disturbed; None where both did not run together.
        """
        found = self.interval(one, other)
        if found is not None:
            return ratio_entry(found)
        return NO_SPEEDUP if has_rounds(self.heats, one, other) else None

    def anchor(self) -> str | None:
        """Return the engine from whose time those of all others follow: the root's baseline."""
        root = self.chosen.get(self.record.model)
        return self.engine("baseline") or root or next(iter(self.chosen.values()), None)

    def seconds(self, name: str) -> Interval | None:
        """Return the seconds per call of an engine: those of the anchor over its speed-up.

        The interval is that of the speed-up.
        """
        anchor = self.anchor()
        own = call_time(self.heats, anchor) if anchor else None
        faster = self.interval(name, anchor) if anchor else None
        if own is None or faster is None or not faster.low:
            return None
        return Interval(own / faster.value, own / faster.high, own / faster.low)

    def disturbed(self) -> str | None:
        """Return why other load left too few rounds for the ratio of a pair; None if it did not."""
        for heat in self.heats:
            for one, other in heat["pairs"]:
                rounds = common_rounds(heat, one, other, all_rounds=True)
                kept = len(common_rounds(heat, one, other))
                if kept < FEWEST_ROUNDS <= len(rounds):
                    facts = [fact for name in (one, other) for fact in heat["facts"][name] if fact]
                    words = causes(facts, heat["foreign_cores"], self.record.busiest)
                    left = f"{kept} of {len(rounds)} rounds are left of {one} and {other}"
                    return f"other load disturbed the rounds: {left}; {words}"
        return None

    def rounds(self) -> int:
        """Return how many rounds were measured."""
        return sum(len(heat["loads"]) for heat in self.heats)


def call_time(heats: list[dict[str, Any]], name: str) -> float | None:
    """Return the seconds per call of an engine; of all its rounds if all were disturbed."""
    for heat in heats:
        for all_rounds in (False, True):
            if name not in heat["blocks_s"]:
                continue
            rounds = common_rounds(heat, name, name, all_rounds=all_rounds)
            if rounds:
                return call_seconds([heat["blocks_s"][name][at] for at in rounds]).value
    return None
