"""Buckets of shapes: a static program for each."""

from bisect import bisect_left
from itertools import product
from typing import Any

from tightrope.plan.shapes import is_of_images, shapes_of
from tightrope.signature import BATCH, SEQUENCE

SHORTEST = 32


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


def buckets_of(config: dict[str, Any], model: str) -> dict[str, list[int]] | None:
    """`buckets` for one model, None where the engine is to take any shape.

    `auto`: the batches of `shapes`, 1 among them; powers of two from 32 tokens to the longest
    sequence that is measured, which is the last edge. Images have batches only.
    """
    if config["buckets"] is None:
        return None
    if config["buckets"] != "auto":
        axes = (BATCH,) if is_of_images(config, model) else PLURALS
        return {axis: config["buckets"][axis] for axis in axes}
    shapes = shapes_of(config, model)
    found = {BATCH: sorted({1, *(shape[BATCH] for shape in shapes)})}
    if not is_of_images(config, model):
        lengths = [config["models"][model]["max_sequence"], *(one[SEQUENCE] for one in shapes)]
        found[SEQUENCE] = powers_of_two(SHORTEST, max(lengths))
    return found


def powers_of_two(first: int, last: int) -> list[int]:
    """Powers of two from `first` on, below `last`, and then `last` itself."""
    return [*(2**n for n in range(last.bit_length()) if first <= 2**n < last), last]
