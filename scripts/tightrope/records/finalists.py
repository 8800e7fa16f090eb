"""Who takes part in the race of a model at one shape: who may be the fastest, and each engine's
best in float beside its best quantized."""

from collections.abc import Callable, Iterable
from typing import NamedTuple

from tightrope.statistics import Interval
from tightrope.variants import QUANTIZED, parse

# from answers that can be deployed to those that cannot
STANDINGS = ("kept", "undecided", "dropped")
# more of them would each get too few rounds
MOST = 8


class Candidate(NamedTuple):
    """A variant that was measured at a shape.

    `speedup` is over the baseline, `verdict` that on its accuracy, `kept` where it was not judged.
    """

    variant: str
    speedup: Interval
    verdict: str

    @property
    def standing(self) -> int:
        """0 where its answers can be deployed, more where they may not."""
        return STANDINGS.index(self.verdict)


class Finalists(NamedTuple):
    """The variants of one race.

    `contenders` may win, the best by its speed-up first; `pairs` are a quantized variant and one
    in float of the same engine, which may be contenders or not.
    """

    contenders: list[str]
    pairs: list[tuple[str, str]]

    @property
    def names(self) -> list[str]:
        """Every variant that takes part, once; those of a pair together, so that they meet."""
        found: dict[str, None] = {}
        for name in (*self.contenders, *(one for pair in self.pairs for one in pair)):
            pairs = [pair for pair in self.pairs if name in pair]
            found |= dict.fromkeys([name, *(one for pair in pairs for one in pair)])
        return list(found)


def finalists(candidates: Iterable[Candidate]) -> Finalists:
    """Who may be the fastest that keeps the answers, and the best pair of each engine."""
    ordered = sorted(candidates, key=lambda one: -one.speedup.low)
    fit = [one for one in ordered if one.standing == 0]
    contenders = [one.variant for one in fit if one.speedup.high >= fit[0].speedup.low]
    engines: dict[tuple[str, str], list[Candidate]] = {}
    for one in ordered:
        engines.setdefault(parse(one.variant)[:2], []).append(one)
    pairs = [best_pair(group) for group in engines.values()]
    return Finalists(contenders[:MOST], [pair for pair in pairs if pair])


def best_pair(group: list[Candidate]) -> tuple[str, str] | None:
    """The best quantized variant of an engine and its best in float, None without either."""
    quantized = best(group, lambda one: parse(one.variant).precision in QUANTIZED)
    plain = best(group, lambda one: parse(one.variant).precision not in QUANTIZED)
    return (quantized, plain) if quantized and plain else None


def best(group: list[Candidate], belongs: Callable[[Candidate], bool]) -> str | None:
    """Of those with the best answers the one that is surely the fastest."""
    found = [one for one in group if belongs(one)]
    return min(found, key=lambda one: (one.standing, -one.speedup.low)).variant if found else None
