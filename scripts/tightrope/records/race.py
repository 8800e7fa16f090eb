"""Record of a race of finalists, and its statistics."""

import math
from collections.abc import Iterable, Sequence
from itertools import combinations
from typing import Any

from msgspec import Struct

from tightrope.machine.interference import Counters, disturbance
from tightrope.records.latency import drift_std
from tightrope.records.record import FEWEST_ROUNDS, Kept, Sized, TimedRecord, call_seconds, kept_of
from tightrope.statistics import LEVEL, Interval, speedup

# fewest common undisturbed rounds to choose a winner
FEWEST_TO_CHOOSE = 10
# why a race ended: see `none_faster`; `decision.seconds` elapsed
NONE_FASTER, TIME_LIMIT = "none faster", "time limit"


class Elimination(Struct, kw_only=True, forbid_unknown_fields=True):
    """The number of the round in which a variant left a race, and the significantly faster one."""

    round: int
    by: str


class RacedShape(Sized, kw_only=True):
    """The rounds of a heat at one shape; `contenders` and `pairs` are those of `Finalists`.

    `blocks_s` (seconds per call) and `facts` have an entry per variant and round, None where the
    variant did not run; `loads` has the load of each round. `out` has the eliminated variants.
    """

    contenders: list[str] = []
    pairs: list[tuple[str, str]] = []
    blocks_s: dict[str, list[list[float] | None]] = {}
    facts: dict[str, list[Counters | None]] = {}
    loads: list[int] = []
    foreign_cores: list[float | None] = []
    out: dict[str, Elimination] = {}
    stop: str | None = None
    seconds: float = 0.0


class Heat(Struct, kw_only=True, forbid_unknown_fields=True):
    """The shapes of finalists that fit in memory together."""

    shapes: Sequence[RacedShape] = ()


class RaceRecord(TimedRecord, kw_only=True):
    """Times of the finalists of a model on one device, all measured in the same rounds.

    `left_out` maps a variant that died to the reason. `engines_sha256` are those of the manifests;
    `plan` holds the `latency` settings, `decision` the settings of that name.
    """

    device: str
    plan: dict[str, Any]
    decision: dict[str, Any]
    processors: list[int]
    engines_sha256: dict[str, str]
    left_out: dict[str, str] = {}
    heats: Sequence[Heat] = ()
    seconds: float = 0.0


def common_rounds(
    shape: RacedShape, one: str, other: str, *, all_rounds: bool = False
) -> list[int]:
    """Return the rounds in which both engines ran and other load disturbed neither.

    With `all_rounds` disturbed rounds are included.
    """
    windows, found = shape.foreign_cores, []
    for index, both in enumerate(zip(shape.facts[one], shape.facts[other], strict=True)):
        facts = [fact for fact in both if fact is not None]
        ran = len(facts) == len(both)
        if ran and (all_rounds or not any(disturbance(fact, windows) for fact in facts)):
            found.append(index)
    return found


def kept_rounds(shape: RacedShape, one: str, other: str, *, accept: bool = False) -> Kept[int]:
    """Return which rounds of both count for their ratio, as `kept_of` does.

    The reason says how many are left.
    """
    every = common_rounds(shape, one, other, all_rounds=True)
    quiet = common_rounds(shape, one, other)
    left = f"{len(quiet)} of {len(every)} rounds are left of {one} and {other}"
    return kept_of(every, quiet, FEWEST_ROUNDS, lambda: left, accept=accept)


def call_time(heats: Iterable[RacedShape], name: str) -> float | None:
    """Return the seconds per call of an engine; of all its rounds if all were disturbed."""
    for shape in heats:
        if name in shape.blocks_s:
            rounds = common_rounds(shape, name, name)
            rounds = rounds or common_rounds(shape, name, name, all_rounds=True)
            if rounds:
                return call_seconds([shape.blocks_s[name][at] or [] for at in rounds]).value
    return None


def ratio(
    shape: RacedShape,
    one: str,
    other: str,
    *,
    level: float = LEVEL,
    all_rounds: bool = False,
    loads: int | None = None,
) -> Interval | None:
    """Return the time of `other` over that of `one`: the speed-up of `one` over `other`.

    The interval includes the uncertainty of a single load, see `latency.drift_std`. With
    `loads` it is computed as if the rounds had that many loads. None with fewer than
    `FEWEST_ROUNDS` rounds that count.
    """
    rounds = common_rounds(shape, one, other, all_rounds=all_rounds)
    if len(rounds) < FEWEST_ROUNDS:
        return None
    ours, theirs = ([shape.blocks_s[name][at] or [] for at in rounds] for name in (one, other))
    loads = loads or len({shape.loads[at] for at in rounds})
    return speedup(ours, theirs, loads=loads, level=level, unsteady=drift_std(0.0, loads))


def beaten_by(shape: RacedShape, names: list[str], look: int) -> dict[str, str]:
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


def is_decided(shape: RacedShape, pair: tuple[str, str], within: float) -> bool:
    """Return whether one of two engines is significantly faster, or both are equal."""
    found = ratio(shape, *pair)
    return found is not None and (not found.low <= 1 <= found.high or is_equal(found, within))


def all_equal(shape: RacedShape, names: list[str], within: float) -> bool:
    """Return whether the intervals show that any two engines differ by at most `within`."""
    return all(is_equal(ratio(shape, *pair), within) for pair in combinations(names, 2))


def none_faster(
    shape: RacedShape, names: list[str], within: float, *, loads: int | None = None
) -> bool:
    """Return whether no engine is faster than the estimated leader by more than `within`.

    With `loads` whether that would hold if the rounds had that many loads.
    """
    first = leader(shape, names)
    if first is None:
        return False
    found = [ratio(shape, first, name, loads=loads) for name in names if name != first]
    return all(one is not None and one.low >= 1 / (1 + within) for one in found)


def leader(shape: RacedShape, names: list[str], *, all_rounds: bool = False) -> str | None:
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
