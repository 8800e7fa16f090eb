"""TensorRT optimization profiles: the shapes that an engine accepts and is tuned for."""

import math
from collections.abc import Sequence
from typing import NamedTuple

from tightrope.runtimes.buckets import PLURALS, in_words

# shape of a request: [batch, sequence] of texts, [batch] of images
Shape = tuple[int, ...]


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
