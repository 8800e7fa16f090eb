"""The record of a latency: times of a variant and of its baseline in turn."""

from dataclasses import dataclass, field
from typing import Any

from tightrope.records.record import Record


@dataclass(kw_only=True)
class LatencyRecord(Record):
    """Times of one variant, and of its baseline in blocks that alternate with its own.

    Each of `shapes` holds the shape (`batch`, `sequence`), `first_call_s` (the first of that
    shape) and what `paired_blocks.compare` gives: `warmups`, one for each load of the engine;
    `blocks_s` and `baseline_blocks_s`, one list of seconds a call for each block, blocks of the
    same index measured next to each other; `device_s`, seconds of calls on inputs that are on the
    GPU, None on the CPU; `pairs`, what was counted of each pair (`interference.of_pair`), and
    `foreign_cores`, what other programs used in each window; `stop`, why no more was measured.
    `lost_s` are the seconds that other load cost, `loudest` the cores that the loudest programs
    used, by name.
    `baseline` and its blocks are None for the baseline itself, or where the baseline cannot run:
    then `baseline_failed` says why. `plan` is `latency` of the configuration, `processors` those
    to which both processes were pinned, `reference` the fixed workload `before` and `after`.
    """

    threads: int
    plan: dict[str, Any]
    processors: list[int]
    baseline: str | None = None
    baseline_failed: str | None = None
    reference: dict[str, Any] | None = None
    lost_s: float = 0.0
    loudest: dict[str, float] = field(default_factory=dict)
    import_s: float | None = None
    load_s: float | None = None
    first_call_s: float | None = None
    peak_rss_bytes: int | None = None
    shapes: list[dict[str, Any]] = field(default_factory=list)
