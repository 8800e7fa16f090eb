"""TensorRT's optimization profiles: the shapes that an engine takes and those it is tuned for."""

import math
from collections.abc import Sequence
from typing import NamedTuple

from tightrope.runtimes.buckets import PLURALS, in_words

ENGINE = "tensorrt"
# of a request: [batch, sequence] of texts, [batch] of images
Shape = tuple[int, ...]


class Profile(NamedTuple):
    """The smallest and the largest request of a profile, and the one it is tuned for."""

    min: Shape
    opt: Shape
    max: Shape

    @classmethod
    def of(cls, shapes: Sequence[Sequence[int]]) -> "Profile":
        """The profile of three shapes, as a JSON document gives it back."""
        smallest, usual, largest = map(tuple, shapes)
        return cls(smallest, usual, largest)

    def holds(self, *request: int) -> bool:
        """Whether a request of these sizes lies in it."""
        sides = zip(self.min, request, self.max, strict=True)
        return all(least <= size <= most for least, size, most in sides)

    def ranges(self) -> str:
        """What it takes, in words."""
        sides = zip(PLURALS.values(), self.min, self.max, strict=False)
        return " and ".join(f"{name} {least} to {most}" for name, least, most in sides)


def choose(profiles: Sequence[Profile], *request: int) -> int:
    """Index of the profile for a request of these sizes.

    Of those that hold it, the first of those tuned for the nearest shape. How far a shape is off is
    counted in doublings, of rows and of tokens together: kernels are picked by how many times they
    fill their tiles and the GPU, so 1 row is as far from 2 as 64 are from 128. Raises ValueError
    with the ranges where no profile holds it.
    """
    holding = [index for index, one in enumerate(profiles) if one.holds(*request)]
    if not holding:
        raise ValueError(
            f"a request of {in_words(request)}: this engine was built for {all_ranges(profiles)} "
            "(`tensorrt.profiles`)"
        )
    return min(holding, key=lambda index: doublings(profiles[index].opt, request))


def doublings(one: Shape, other: Shape) -> float:
    """How often rows and tokens must be doubled or halved to get from one shape to the other."""
    return sum(abs(math.log2(here / there)) for here, there in zip(one, other, strict=True))


def all_ranges(profiles: Sequence[Profile]) -> str:
    """What the profiles take, in words, each range once."""
    return ", or ".join(dict.fromkeys(one.ranges() for one in profiles))
