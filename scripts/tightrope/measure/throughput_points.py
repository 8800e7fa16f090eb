"""Which numbers of instances, threads and batches are tried, and which of them cannot win."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, NamedTuple

from tightrope.statistics import Interval

AUTO: Literal["auto"] = "auto"


class Division(NamedTuple):
    """So many instances of an engine, each with so many threads on cores of its own."""

    instances: int
    threads: int


def divisions(
    instances: Sequence[int] | Literal["auto"],
    threads: Sequence[int] | Literal["auto"],
    *,
    cores: int,
) -> list[Division]:
    """Return the divisions of `cores`, those with fewer instances first.

    The first is one instance with all threads, with which the others are compared. `auto` instances
    are the divisors of `cores`, `auto` threads share all cores. A division that needs more cores
    than there are is among them, see `too_large`.
    """
    counts = divisors(cores) if instances == AUTO else instances
    found = {Division(1, cores)}
    for count in counts:
        shares = [max(1, cores // count)] if threads == AUTO else threads
        found |= {Division(count, share) for share in shares}
    return sorted(found, key=lambda one: (one.instances, -one.threads))


def divisors(number: int) -> list[int]:
    """Return all divisors in ascending order."""
    return [one for one in range(1, number + 1) if number % one == 0]


def too_large(division: Division, *, cores: int) -> str | None:
    """Return why a division does not fit on so many cores, None where it does."""
    needed = division.instances * division.threads
    return f"needs {needed} cores, there are {cores}" if needed > cores else None


def shares(division: Division, processors: Sequence[int]) -> list[list[int]]:
    """Return the processors of each instance; no two instances share one."""
    width = division.threads
    return [list(processors[start * width :][:width]) for start in range(division.instances)]


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


def broken_before(instances: int, batch: int, points: Iterable[Mapping[str, Any]]) -> str | None:
    """Return why more instances are not tried: fewer of them failed at this batch."""
    for one in points:
        failed = one["reason"] and not one["skipped"]
        if failed and one["batch"] == batch and one["instances"] < instances:
            return f"failed with {one['instances']} instances: {one['reason']}"
    return None
