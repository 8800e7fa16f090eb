"""Buckets of shapes: a static program for each, and which of them holds a request."""

from bisect import bisect_left
from itertools import product

from tightrope.signature import BATCH, SEQUENCE

# the one shape of a program: [batch, sequence] of texts, [batch] of images
Bucket = tuple[int, ...]
PLURALS = {BATCH: "batches", SEQUENCE: "sequences"}


class Buckets:
    """The shapes that an engine was built for: every batch with every sequence, ascending."""

    def __init__(self, sizes: dict[str, list[int]]) -> None:
        self.sizes = {axis: sorted(sizes[axis]) for axis in PLURALS if axis in sizes}

    def all(self) -> list[Bucket]:
        """Every bucket, the smallest first."""
        return list(product(*self.sizes.values()))

    def nearest(self, *request: int) -> Bucket:
        """The smallest bucket that holds a request of these sizes; ValueError names the range."""
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
    """`16x128` for the sizes of a text's axes, `16` for images."""
    return "x".join(map(str, sizes))
