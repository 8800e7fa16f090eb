"""Equal layers in a row, told once: a sequence folded where a part of it repeats."""

from collections.abc import Hashable, Sequence
from typing import NamedTuple

# layers of a part that repeats: those of an encoder without names are a handful
LONGEST = 64


class Block(NamedTuple):
    """The part of a sequence that starts at `first` and is there `times` times in a row."""

    first: int
    length: int
    times: int


def folded(signs: Sequence[Hashable]) -> list[Block]:
    """`signs` as blocks, in their order; equal signs stand for equal layers.

    From each place on the repetition is taken that spares the most; among these the shortest.
    """
    numbers: dict[Hashable, int] = {}
    row = [numbers.setdefault(sign, len(numbers)) for sign in signs]
    blocks, first = [], 0
    while first < len(row):
        block = longest_repetition(row, first)
        blocks.append(block)
        first += block.length * block.times
    return blocks


def longest_repetition(row: Sequence[int], first: int) -> Block:
    """The repetition from `first` on that spares the most places, a single one where none does."""
    best = Block(first, 1, 1)
    for length in range(1, min(LONGEST, (len(row) - first) // 2) + 1):
        part, times = row[first : first + length], 1
        while row[first + times * length : first + (times + 1) * length] == part:
            times += 1
        if length * (times - 1) > best.length * (best.times - 1):
            best = Block(first, length, times)
    return best
