"""Folding of consecutive equal layers, also where a part of several layers repeats."""

from collections.abc import Hashable, Sequence
from typing import NamedTuple

# maximum layers per repeated part; an encoder block without names has only a handful
LONGEST = 64


class Block(NamedTuple):
    """Part of a sequence that starts at `first` and repeats `times` times in a row."""

    first: int
    length: int
    times: int


def folded(signs: Sequence[Hashable]) -> list[Block]:
    """Split `signs` into blocks, in order; equal signs stand for equal layers.

    Greedy: each position starts the repetition that saves the most layers, the shortest on ties.
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
    """Return the repetition from `first` that saves the most layers, else a single layer."""
    best = Block(first, 1, 1)
    for length in range(1, min(LONGEST, (len(row) - first) // 2) + 1):
        part, times = row[first : first + length], 1
        while row[first + times * length : first + (times + 1) * length] == part:
            times += 1
        if length * (times - 1) > best.length * (best.times - 1):
            best = Block(first, length, times)
    return best
