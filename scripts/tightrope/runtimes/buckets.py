"""Shape buckets: a static program each, and the choice of the bucket for a request."""

from bisect import bisect_left
from itertools import product

from tightrope.signature import BATCH, SEQUENCE

# shape of a static program: [batch, sequence] of texts, [batch] of images
Bucket = tuple[int, ...]
PLURALS = {BATCH: "batches", SEQUENCE: "sequences"}


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
