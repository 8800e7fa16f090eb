"""Types of the entries on throughput in summary.json.

docs/summary-json.md describes the fields. Times are in seconds; None means not known.
"""

from typing import TypedDict

from tightrope.summary.measured import Measured
from tightrope.summary.result_types import Ratio


class ThroughputPoint(TypedDict):
    """So many instances with so many threads each, at one batch.

    `reason` says why there are no numbers: the point was `skipped`, or else it failed.
    `foreign_cores` are those that other programs used; `disturbed` says that it was too many, and
    the numbers are None unless they are `provisional`.
    """

    instances: int
    threads: int
    batch: int
    skipped: bool
    reason: str | None
    disturbed: str | None
    provisional: bool
    samples_per_s: float | None
    low: float | None
    high: float | None
    calls: int | None
    p50_s: float | None
    p99_s: float | None
    foreign_cores: float | None
    peak_rss_bytes: int | None


class Throughput(Measured):
    """Throughput of a variant by instances, threads and batch.

    `single` is the fastest point of one instance with all threads, `gain` the samples per second
    of `best` over it; `best_within_bound` is the fastest whose p99 is known and within
    `p99_bound_s`.
    """

    cores: int
    sequence: int | None
    height: int | None
    width: int | None
    p99_bound_s: float | None
    spent_s: float
    points: list[ThroughputPoint]
    best: ThroughputPoint | None
    best_within_bound: ThroughputPoint | None
    single: ThroughputPoint | None
    gain: Ratio | None
