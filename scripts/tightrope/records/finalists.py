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
    float variant of the same engine, which may also be contenders.
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


def finalists(candidates: Iterable[Candidate]) -> Finalists:
    """Select the possible winners among deployable variants, and the best pair of each engine."""
    ordered = sorted(candidates, key=lambda one: -one.speedup.low)
    fit = [one for one in ordered if one.standing == 0]
    contenders = [one.variant for one in fit if one.speedup.high >= fit[0].speedup.low]
    engines: dict[tuple[str, str], list[Candidate]] = {}
    for one in ordered:
        engines.setdefault(parse(one.variant)[:2], []).append(one)
    pairs = [best_pair(group) for group in engines.values()]
    return Finalists(contenders[:MOST], [pair for pair in pairs if pair])


def best_pair(group: list[Candidate]) -> tuple[str, str] | None:
    """Return the best quantized and the best float variant of an engine, None without either."""
    quantized = best(group, lambda one: parse(one.variant).precision in QUANTIZED)
    plain = best(group, lambda one: parse(one.variant).precision not in QUANTIZED)
    return (quantized, plain) if quantized and plain else None


def best(group: list[Candidate], belongs: Callable[[Candidate], bool]) -> str | None:
    """Return the variant with the highest lower speed-up bound among those of the best standing."""
    found = [one for one in group if belongs(one)]
    return min(found, key=lambda one: (one.standing, -one.speedup.low)).variant if found else None
