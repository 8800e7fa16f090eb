"""Which numbers of instances and threads are tried."""

from collections.abc import Sequence
from typing import Literal, NamedTuple

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
