"""Finalists of the race of a model at one shape.

Variants that may be the fastest, and the best quantized variant of each engine paired with its best
float variant.
"""

from collections.abc import Callable, Iterable
from typing import NamedTuple

from tightrope.statistics import Interval
from tightrope.variants import QUANTIZED, parse

# from deployable to not deployable
STANDINGS = ("kept", "undecided", "dropped")
# more contenders would get too few rounds each
MOST = 8


class Candidate(NamedTuple):
    """A variant measured at a shape.

    `speedup` is over the baseline; `verdict` is that of its accuracy, `kept` where not evaluated.
    """

    variant: str
    speedup: Interval
    verdict: str

    @property
    def standing(self) -> int:
        """Return 0 for a deployable accuracy verdict, more for a worse one."""
        return STANDINGS.index(self.verdict)


class Finalists(NamedTuple):
    """The variants of one race.

    `contenders` may win, ordered by the lower end of their speed-up; `pairs` are a quantized and a
    float variant of the same engine, or two for a goal, which may also be contenders.
    """

    contenders: list[str]
    pairs: list[tuple[str, str]]

    @property
    def names(self) -> list[str]:
        """Return every variant once, those of a pair adjacent so that they meet in a heat."""
        found: dict[str, None] = {}
        for name in (*self.contenders, *(one for pair in self.pairs for one in pair)):
            pairs = [pair for pair in self.pairs if name in pair]
            found |= dict.fromkeys([name, *(one for pair in pairs for one in pair)])
        return list(found)


def finalists(candidates: Iterable[Candidate], wanted: Iterable[Candidate] = ()) -> Finalists:
    """Select the possible winners among deployable variants, and the best pair of each engine.

    `wanted` are those that meet the bounds of a goal: the possible winners among these race in
    pairs too, because faster variants that miss a bound eliminate them as contenders.
    """
    ordered = sorted(candidates, key=lambda one: -one.speedup.low)
    contenders = possible_winners(one for one in ordered if one.standing == 0)
    engines: dict[tuple[str, str], list[Candidate]] = {}
    for one in ordered:
        engines.setdefault(parse(one.variant)[:2], []).append(one)
    found = []
    for group in engines.values():
        quantized = best(group, lambda one: parse(one.variant).precision in QUANTIZED)
        plain = best(group, lambda one: parse(one.variant).precision not in QUANTIZED)
        if quantized and plain:
            found.append((quantized, plain))
    known = {frozenset(pair) for pair in found}
    goal = pairs_for_goal(possible_winners(wanted), contenders)
    return Finalists(contenders, [*found, *(one for one in goal if frozenset(one) not in known)])


def possible_winners(candidates: Iterable[Candidate]) -> list[str]:
    """Return the variants whose speed-up reaches the lower end of the highest, at most `MOST`."""
    ordered = sorted(candidates, key=lambda one: -one.speedup.low)
    return [one.variant for one in ordered if one.speedup.high >= ordered[0].speedup.low][:MOST]


def pairs_for_goal(wanted: list[str], contenders: list[str]) -> list[tuple[str, str]]:
    """Return pairs of the first of `wanted` with the others, none where that race is the same.

    A single one is paired with the first contender, so that it has a time of the same rounds.
    """
    if not wanted or wanted == contenders:
        return []
    others = wanted[1:] or contenders[:1]
    return [(wanted[0], other) for other in others if other != wanted[0]]


def best(group: list[Candidate], belongs: Callable[[Candidate], bool]) -> str | None:
    """Return the variant with the highest lower speed-up bound among those of the best standing."""
    found = [one for one in group if belongs(one)]
    return min(found, key=lambda one: (one.standing, -one.speedup.low)).variant if found else None
