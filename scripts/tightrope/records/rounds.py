"""Rounds with a block of calls of each of several engines, and what follows from them."""

import statistics
from collections.abc import Sequence
from typing import Any, TypedDict

from tightrope.machine.interference import MAX_FOREIGN_CORES
from tightrope.statistics import Interval, speedup, trimmed_mean

# fewest undisturbed rounds for numbers
FEWEST_ROUNDS = 6


class Round(TypedDict, total=False):
    """A block of calls of each engine, measured in random order.

    `blocks_s` holds, for each engine, the seconds per call; `foreign_cores` are the cores of their
    processors that other programs used meanwhile.
    """

    blocks_s: list[list[float]]
    foreign_cores: float


def undisturbed_rounds(rounds: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the rounds that no other load disturbed."""
    return [one for one in rounds if one["foreign_cores"] <= MAX_FOREIGN_CORES]


def blocks_of(rounds: Sequence[dict[str, Any]], engine: int) -> list[list[float]]:
    """Return the blocks of an engine, by its index."""
    return [one["blocks_s"][engine] for one in rounds]


def call_seconds(blocks: Sequence[list[float]]) -> Interval:
    """Return the seconds per call of an engine with their interval."""
    return trimmed_mean([statistics.median(block) for block in blocks])


def time_ratio(blocks: list[list[float]], reference: list[list[float]]) -> Interval:
    """Return the time of an engine over that of another, from the rounds of both.

    Each was loaded once, so the interval includes the variation between loads of one engine.
    """
    return speedup(reference, blocks, loads=1)
