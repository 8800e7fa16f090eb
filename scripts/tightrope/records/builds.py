"""Record of builds: the same engine built several times, and its calls in shared rounds."""

import statistics
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, TypedDict

from tightrope.machine.interference import MAX_FOREIGN_CORES
from tightrope.records.contents import Sized
from tightrope.records.record import Record
from tightrope.statistics import Interval, speedup, trimmed_mean

# fewest undisturbed rounds for numbers
FEWEST_ROUNDS = 6


class Round(TypedDict, total=False):
    """An entry of `rounds` of a BuildsRecord, see there."""

    blocks_s: list[list[float]]
    foreign_cores: float


class Build(TypedDict, total=False):
    """An entry of `builds` of a BuildsRecord, see there."""

    build_s: float
    size_bytes: int


@dataclass(kw_only=True)
class BuildsRecord(Record):
    """Calls of several builds of an engine from the same files, at one shape.

    Each of `builds` holds `build_s`, the seconds of the build, and `size_bytes` of its files;
    `identical` is whether all files of all builds are the same. Each of `rounds` holds `blocks_s`,
    for each build the seconds per call of a block, which were measured in random order; and
    `foreign_cores`, the cores of its processors that other programs used meanwhile.

    `shape` holds the sizes of the inputs, `options` those of the build. `lost_s` are the seconds
    lost to other load, `busiest` the cores that the busiest programs used, by name. A failed record
    has no rounds.
    """

    CONTENTS: ClassVar[dict[str, Any]] = {
        "builds": list[Build],
        "rounds": list[Round],
        "shape": Sized,
    }

    threads: int
    processors: list[int]
    shape: dict[str, int]
    options: dict[str, Any]
    identical: bool | None = None
    lost_s: float = 0.0
    busiest: dict[str, float] = field(default_factory=dict)
    builds: list[dict[str, Any]] = field(default_factory=list)
    rounds: list[dict[str, Any]] = field(default_factory=list)


def undisturbed_rounds(record: BuildsRecord) -> list[dict[str, Any]]:
    """Return the rounds that no other load disturbed."""
    return [one for one in record.rounds if one["foreign_cores"] <= MAX_FOREIGN_CORES]


def blocks_of(rounds: Sequence[dict[str, Any]], build: int) -> list[list[float]]:
    """Return the blocks of a build, by its index."""
    return [one["blocks_s"][build] for one in rounds]


def call_seconds(blocks: Sequence[list[float]]) -> Interval:
    """Return the seconds per call of a build with their interval."""
    return trimmed_mean([statistics.median(block) for block in blocks])


def time_ratio(blocks: list[list[float]], reference: list[list[float]]) -> Interval:
    """Return the time of a build over that of another, from the rounds of both.

    Each was loaded once, so the interval includes the variation between loads of one engine.
    """
    return speedup(reference, blocks, loads=1)
