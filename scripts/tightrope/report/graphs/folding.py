"""Folding of consecutive equal layers, also where a part of several layers repeats."""

from collections.abc import Hashable, Sequence
from typing import NamedTuple

# maximum layers per repeated part; an encoder block without names has only a handful
LONGEST_PART = 64


class Block(NamedTuple):
    """Part of a sequence that starts at `first` and repeats `times` times in a row."""

    first: int
    length: int
    times: int


def fold_repetitions(signatures: Sequence[Hashable]) -> list[Block]:
    """Split `signatures` into blocks, in order; equal signatures stand for equal layers.

    Greedy: each position starts the repetition that saves the most layers, the shortest on ties.
    """
    numbers: dict[Hashable, int] = {}
    sequence = [numbers.setdefault(signature, len(numbers)) for signature in signatures]
    blocks, first = [], 0
    while first < len(sequence):
        block = longest_repetition(sequence, first)
        blocks.append(block)
        first += block.length * block.times
    return blocks


def longest_repetition(sequence: Sequence[int], first: int) -> Block:
    """Return the repetition from `first` that saves the most layers, else a single layer."""
    best = Block(first, 1, 1)
    for length in range(1, min(LONGEST_PART, (len(sequence) - first) // 2) + 1):
        part, times = sequence[first : first + length], 1
        while sequence[first + times * length : first + (times + 1) * length] == part:
            times += 1
        if length * (times - 1) > best.length * (best.times - 1):
            best = Block(first, length, times)
    return best
