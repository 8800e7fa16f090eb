"""Builds entries of summary.json."""

from collections.abc import Sequence
from typing import Any, cast

from tightrope.records.builds import BuildsRecord
from tightrope.records.rounds import (
    FEWEST_ROUNDS,
    blocks_of,
    call_seconds,
    time_ratio,
    undisturbed_rounds,
)
from tightrope.statistics import Interval
from tightrope.summary.builds_types import Build, Builds
from tightrope.summary.measured import measured_entry
from tightrope.summary.noise import too_few_rounds
from tightrope.summary.result_types import Shape
from tightrope.summary.slowdown import Slowdown, slowdown_entry

Blocks = list[list[float]]


def builds_entry(record: BuildsRecord, *, accept_disturbed: bool = False) -> Builds:
    """Return the entry of a builds record.

    One that other load left too few rounds has no numbers; with `accept_disturbed` all rounds count
    for it, and it is `provisional`.
    """
    kept, why = undisturbed_rounds(record.rounds), why_disturbed(record)
    provisional = why is not None and accept_disturbed
    counted = record.rounds if provisional else kept
    enough = len(counted) >= FEWEST_ROUNDS
    blocks = [blocks_of(counted, build) for build in range(len(record.builds))] if enough else None
    sizes = {one["size_bytes"] for one in record.builds}
    return {
        **measured_entry(record),
        "shape": cast(Shape, record.shape),
        "builds": build_entries(record.builds, blocks),
        "spread": spread(blocks) if blocks else None,
        "sizes_differ": len(sizes) > 1 if sizes else None,
        "identical": record.identical,
        "rounds": len(counted),
        "disturbed_rounds": len(record.rounds) - len(kept),
        "disturbed": why,
        "provisional": provisional,
    }


def why_disturbed(record: BuildsRecord) -> str | None:
    """Return why other load left too few rounds; None where it did not."""
    return too_few_rounds(record.rounds, "a round of builds", record.busiest)


def build_entries(builds: Sequence[dict[str, Any]], blocks: list[Blocks] | None) -> list[Build]:
    """Return the entries of all builds, without times where there are no `blocks`."""
    times = [call_seconds(one) for one in blocks] if blocks else []
    middle = median_build(times) if times else None
    return [
        {
            "build_s": build["build_s"],
            "size_bytes": build["size_bytes"],
            "call_s": times[number].value if times else None,
            "low": times[number].low if times else None,
            "high": times[number].high if times else None,
            "over_median": None
            if blocks is None or middle is None or number == middle
            else slowdown_entry(time_ratio(blocks[number], blocks[middle])),
        }
        for number, build in enumerate(builds)
    ]


def median_build(times: Sequence[Interval]) -> int:
    """Return the index of the build with the median time, of an even number the faster one."""
    order = sorted(range(len(times)), key=lambda number: times[number].value)
    return order[(len(order) - 1) // 2]


def spread(blocks: list[Blocks]) -> Slowdown:
    """Return the time of the slowest build over that of the fastest."""
    times = [call_seconds(one).value for one in blocks]
    slowest, fastest = times.index(max(times)), times.index(min(times))
    return slowdown_entry(time_ratio(blocks[slowest], blocks[fastest]))
