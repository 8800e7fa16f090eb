"""Shapes that programs are for: buckets, with a static program each, and optimization profiles.

Both choose what a request runs in.
"""

import math
from bisect import bisect_left
from collections.abc import Sequence
from itertools import product
from typing import NamedTuple

from tightrope.signature import BATCH, SEQUENCE

# shape of a static program: [batch, sequence] of texts, [batch] of images
Bucket = tuple[int, ...]
PLURALS = {BATCH: "batches", SEQUENCE: "sequences"}
# shape of a request: [batch, sequence] of texts, [batch] of images
Shape = tuple[int, ...]


class Buckets:
    """Shape buckets of an engine: every batch with every sequence, ascending."""

    def __init__(self, sizes: dict[str, list[int]]) -> None:
        self.sizes = {axis: sorted(sizes[axis]) for axis in PLURALS if axis in sizes}

    def all(self) -> list[Bucket]:
        """Return every bucket, the smallest first."""
        return list(product(*self.sizes.values()))

    def nearest(self, *request: int) -> Bucket:
        """Return the smallest bucket that holds a request; raise ValueError naming the range."""
        held = []
        for size, known in zip(request, self.sizes.values(), strict=True):
            place = bisect_left(known, size)
            if place == len(known):
                ranges = (f"{PLURALS[axis]} of 1 to {s[-1]}" for axis, s in self.sizes.items())
                raise ValueError(
                    f"a request of {in_words(request)}: this engine was built for "
                    f"{' and '.join(ranges)} (`buckets`)"
                )
            held.append(known[place])
        return tuple(held)


def in_words(sizes: tuple[int, ...]) -> str:
    """Return `16x128` for [batch, sequence] of texts, `16` for [batch] of images."""
    return "x".join(map(str, sizes))


class Profile(NamedTuple):
    """Smallest, tuned (`opt`) and largest request shape of an optimization profile."""

    min: Shape
    opt: Shape
    max: Shape

    @classmethod
    def of(cls, shapes: Sequence[Sequence[int]]) -> "Profile":
        """Return the profile of three shapes, as read from JSON."""
        smallest, usual, largest = map(tuple, shapes)
        return cls(smallest, usual, largest)

    def holds(self, *request: int) -> bool:
        """Return whether a request of these sizes fits the profile."""
        sides = zip(self.min, request, self.max, strict=True)
        return all(least <= size <= most for least, size, most in sides)

    def ranges(self) -> str:
        """Return the accepted sizes, in words."""
        sides = zip(PLURALS.values(), self.min, self.max, strict=False)
        return " and ".join(f"{name} {least} to {most}" for name, least, most in sides)


def choose(profiles: Sequence[Profile], *request: int) -> int:
    """Return the index of the profile for a request of these sizes.

    Of the profiles that hold the request, take the first of those tuned for the nearest shape.
    Distance is the sum of doublings of rows and of tokens, because kernels are picked by how many
    times they fill their tiles and the GPU: 1 row is as far from 2 as 64 are from 128. Raises
    ValueError with the ranges where no profile holds the request.
    """
    holding = [index for index, one in enumerate(profiles) if one.holds(*request)]
    if not holding:
        raise ValueError(
            f"a request of {in_words(request)}: this engine was built for {all_ranges(profiles)} "
            "(`tensorrt.profiles`)"
        )
    return min(holding, key=lambda index: doublings(profiles[index].opt, request))


def covering(profiles: Sequence[Profile]) -> Profile:
    """Return one profile for all requests of these: for an engine that can have only one.

    It is tuned for the largest of their tuned shapes.
    """
    return Profile(
        tuple(map(min, zip(*(one.min for one in profiles), strict=True))),
        max((one.opt for one in profiles), key=math.prod),
        tuple(map(max, zip(*(one.max for one in profiles), strict=True))),
    )


def doublings(one: Shape, other: Shape) -> float:
    """Return the number of doublings or halvings of rows and tokens between two shapes."""
    return sum(abs(math.log2(here / there)) for here, there in zip(one, other, strict=True))


def all_ranges(profiles: Sequence[Profile]) -> str:
    """Return the ranges of the profiles in words, each range once."""
    return ", or ".join(dict.fromkeys(one.ranges() for one in profiles))
