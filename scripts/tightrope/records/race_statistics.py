"""Statistics of a race: time ratios of its engines, eliminated engines, the winner."""

import math
from collections.abc import Iterable
from itertools import combinations
from typing import Any

from tightrope.machine.interference import disturbance
from tightrope.records.machine_speed import drift_std
from tightrope.statistics import LEVEL, Interval, speedup

# fewest common undisturbed rounds for a ratio of two engines
FEWEST_ROUNDS = 6
# fewest common undisturbed rounds to choose a winner
FEWEST_TO_CHOOSE = 10

# why a race ended: see `none_faster`; `decision.seconds` elapsed
NONE_FASTER, TIME_LIMIT = "none faster", "time limit"

Shape = dict[str, Any]


def common_rounds(shape: Shape, one: str, other: str, *, all_rounds: bool = False) -> list[int]:
    """Return the rounds in which both engines ran and other load disturbed neither.

    With `all_rounds` disturbed rounds are included.
    """
    windows = shape["foreign_cores"]
    found = []
    for index, facts in enumerate(zip(shape["facts"][one], shape["facts"][other], strict=True)):
        ran = None not in facts
        if ran and (all_rounds or not any(disturbance(fact, windows) for fact in facts)):
            found.append(index)
    return found


def ratio(
    shape: Shape,
    one: str,
    other: str,
    *,
    level: float = LEVEL,
    all_rounds: bool = False,
    loads: int | None = None,
) -> Interval | None:
    """Return the time of `other` over that of `one`: the speed-up of `one` over `other`.

    The interval includes the uncertainty of a single load, see `machine_speed.drift_std`. With
    `loads` it is computed as if the rounds had that many loads. None with fewer than
    `FEWEST_ROUNDS` rounds that count.
    """
    rounds = common_rounds(shape, one, other, all_rounds=all_rounds)
    if len(rounds) < FEWEST_ROUNDS:
        return None
    ours, theirs = ([shape["blocks_s"][name][at] for at in rounds] for name in (one, other))
    loads = loads or len({shape["loads"][at] for at in rounds})
    return speedup(ours, theirs, loads=loads, level=level, unsteady=drift_std(0.0, loads))


def beaten_by(shape: Shape, names: list[str], look: int) -> dict[str, str]:
    """Map each significantly slower engine to the engine with the largest lead over it.

    The error of 5 % is divided over all pairs (Bonferroni), and over looks as 6 / (pi k)^2, which
    sums to one: for any number of looks, equal engines are eliminated with at most that
    probability.
    """
    pairs = list(combinations(names, 2))
    if not pairs:
        return {}
    level = LEVEL * 6 / (math.pi * look) ** 2 / len(pairs)
    found: dict[str, tuple[float, str]] = {}
    for one, other in pairs:
        faster = ratio(shape, one, other, level=level)
        if faster is None or faster.low <= 1 <= faster.high:
            continue
        winner, loser = (one, other) if faster.low > 1 else (other, one)
        found[loser] = max(found.get(loser, (0.0, "")), (abs(math.log(faster.value)), winner))
    return {loser: winner for loser, (_, winner) in found.items()}


def is_equal(found: Interval | None, within: float) -> bool:
    """Return whether the interval shows that two engines differ by at most `within`."""
    return found is not None and 1 / (1 + within) <= found.low and found.high <= 1 + within


def is_decided(shape: Shape, pair: Iterable[str], within: float) -> bool:
    """Return whether one of two engines is significantly faster, or both are equal."""
    found = ratio(shape, *pair)
    return found is not None and (not found.low <= 1 <= found.high or is_equal(found, within))


def all_equal(shape: Shape, names: list[str], within: float) -> bool:
    """Return whether the intervals show that any two engines differ by at most `within`."""
    return all(is_equal(ratio(shape, *pair), within) for pair in combinations(names, 2))


def none_faster(shape: Shape, names: list[str], within: float, *, loads: int | None = None) -> bool:
    """Return whether no engine is faster than the estimated leader by more than `within`.

    With `loads` whether that would hold if the rounds had that many loads.
    """
    first = leader(shape, names)
    if first is None:
        return False
    found = [ratio(shape, first, name, loads=loads) for name in names if name != first]
    return all(one is not None and one.low >= 1 / (1 + within) for one in found)


def winner(shape: Shape, names: list[str]) -> str | None:
    """Return the fastest of the remaining engines, None where other load prevents a decision.

    That is the case with too few undisturbed rounds, or at the time limit where half of the rounds
    or more were disturbed.
    """
    first = leader(shape, names)
    if first is None or shape["stop"] != TIME_LIMIT:
        return first
    many = [
        2 * len(common_rounds(shape, first, name))
        > len(common_rounds(shape, first, name, all_rounds=True))
        for name in names
    ]
    return first if all(many) else None


def leader(shape: Shape, names: list[str], *, all_rounds: bool = False) -> str | None:
    """Return the fastest engine, by the rounds that each has in common with the first.

    None where one of them has fewer than `FEWEST_TO_CHOOSE` that count.
    """
    first, *others = names
    found = {first: 1.0}
    for name in others:
        if len(common_rounds(shape, name, first, all_rounds=all_rounds)) < FEWEST_TO_CHOOSE:
            return None
        measured = ratio(shape, name, first, all_rounds=all_rounds)
        if measured is None:
            return None
        found[name] = measured.value
    return max(found, key=lambda name: found[name])
