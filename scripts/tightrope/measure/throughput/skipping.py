"""Which points are not measured because they cannot win."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from tightrope.statistics import Interval


class Measured(NamedTuple):
    """What a measured point says: samples per second, and seconds per call.

    A percentile is None with too few calls for it.
    """

    instances: int
    threads: int
    batch: int
    samples_per_s: Interval
    p50_s: float | None
    p99_s: float | None


class Broken(NamedTuple):
    """A point that failed, and why."""

    instances: int
    batch: int
    reason: str


def over_the_bound(
    instances: int, threads: int, batch: int, measured: Iterable[Measured], bound_s: float | None
) -> str | None:
    """Return why a larger batch is too slow: p99 is over the bound at a smaller one already.

    The median alone shows it where the calls were too few for p99.
    """
    if bound_s is None:
        return None
    for one in measured:
        if (one.instances, one.threads) != (instances, threads) or one.batch >= batch:
            continue
        for name, seconds in (("p99", one.p99_s), ("p50", one.p50_s)):
            if seconds is not None and seconds > bound_s:
                return (
                    f"{name} is {1000 * seconds:.3g} ms at batch {one.batch} already, over the "
                    f"bound of {1000 * bound_s:g} ms"
                )
    return None


def already_slower(instances: int, batch: int, measured: Iterable[Measured]) -> str | None:
    """Return why more instances cannot win: the last increase made this batch surely slower.

    Of each number of instances its best threads count. Surely: the intervals do not overlap.
    """
    best: dict[int, Measured] = {}
    for one in measured:
        if one.batch == batch and one.instances < instances:
            known = best.get(one.instances)
            if known is None or one.samples_per_s.value > known.samples_per_s.value:
                best[one.instances] = one
    if len(best) < 2:
        return None
    last = best.pop(max(best))
    other = max(best.values(), key=lambda one: one.samples_per_s.value)
    if last.samples_per_s.high >= other.samples_per_s.low:
        return None
    return (
        f"slower already: {last.instances} instances {last.samples_per_s.value:.4g} samples/s, "
        f"{other.instances} {other.samples_per_s.value:.4g}"
    )


def broken_before(instances: int, batch: int, broken: Sequence[Broken]) -> str | None:
    """Return why more instances are not tried: fewer of them failed at this batch."""
    for one in broken:
        if one.batch == batch and one.instances < instances:
            return f"failed with {one.instances} instances: {one.reason}"
    return None
