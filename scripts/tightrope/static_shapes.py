"""Buckets of shapes: a static program for each."""

from bisect import bisect_left
from typing import Any, NamedTuple

SHORTEST = 32


class Bucket(NamedTuple):
    """The one shape of a program."""

    batch: int
    sequence: int

    def __str__(self) -> str:
        return f"{self.batch}x{self.sequence}"


class Buckets:
    """The shapes that an engine was built for: every batch with every sequence, ascending."""

    def __init__(self, sizes: dict[str, list[int]]) -> None:
        self.batches = sorted(sizes["batch"])
        self.sequences = sorted(sizes["sequence"])

    def all(self) -> list[Bucket]:
        """Every bucket, the smallest first."""
        return [Bucket(batch, tokens) for batch in self.batches for tokens in self.sequences]

    def nearest(self, batch: int, sequence: int) -> Bucket:
        """The smallest bucket that holds [batch, sequence]; ValueError names the range."""
        rows = bisect_left(self.batches, batch)
        columns = bisect_left(self.sequences, sequence)
        if rows == len(self.batches) or columns == len(self.sequences):
            raise ValueError(
                f"a request of {batch}x{sequence}: this engine was built for batches of 1 to "
                f"{self.batches[-1]} and sequences of 1 to {self.sequences[-1]} (`buckets`)"
            )
        return Bucket(self.batches[rows], self.sequences[columns])


def buckets_of(config: dict[str, Any], model: str) -> dict[str, list[int]] | None:
    """`buckets` for one model, None where the engine is to take any shape.

    `auto`: the batches of `shapes`, 1 among them; powers of two from 32 tokens to the longest
    sequence that is measured, which is the last edge.
    """
    if config["buckets"] != "auto":
        return config["buckets"]
    longest = max(
        config["models"][model]["max_sequence"], *(s["sequence"] for s in config["shapes"])
    )
    batches = {1, *(shape["batch"] for shape in config["shapes"])}
    return {"batch": sorted(batches), "sequence": powers_of_two(SHORTEST, longest)}


def powers_of_two(first: int, last: int) -> list[int]:
    """Powers of two from `first` on, below `last`, and then `last` itself."""
    return [*(2**n for n in range(last.bit_length()) if first <= 2**n < last), last]
