"""Record of latency: times of a variant and of its baseline in alternating blocks."""

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar

from tightrope.machine.interference import undisturbed
from tightrope.records.contents import TimedShape
from tightrope.records.record import Record


@dataclass(kw_only=True)
class LatencyRecord(Record):
    """Times of one variant, and of its baseline in alternating blocks.

    Each of `shapes` holds the shape (`batch`, `sequence`), `first_call_s` (the first call at that
    shape) and the result of `comparison.compare`:
    - `warmups`, one per load of the engine;
    - `blocks_s` and `baseline_blocks_s`, one list of seconds per call for each block; blocks of the
      same index were measured next to each other;
    - `device_s`, seconds of calls on inputs that are on the GPU, None on the CPU;
    - `energy_j`, joules of each of `blocks_s`, None where the machine shows no energy or each block
      is too short; `long_blocks`, one per load, from which the energy on a GPU comes, else None;
    - `streams`, for each number of streams that was asked for: `calls` that ended in the `seconds`
      of each block, the state of the `gpu` after it, and the `reason` where it failed; else None;
    - `gpu`, the state of the GPU directly after each of `blocks_s`, None on the CPU;
    - `pairs`, the counters of each pair (`interference.of_pair`), and `foreign_cores`, the cores
      that other programs used in each window;
    - `stop`, why the measurement ended.

    `lost_s` are the seconds lost to other load, `busiest` the cores that the busiest programs used,
    by name. `baseline` and its blocks are None for the baseline itself, or where the baseline
    cannot run: then `baseline_failed` has the reason. `plan` holds the `latency` settings,
    `processors` those that both processes were pinned to, `reference` the fixed workload `before`
    and `after`.

    `undisturbed_pairs` are computed once: no shape changes.
    """

    CONTENTS: ClassVar[dict[str, Any]] = {"shapes": list[TimedShape]}

    threads: int
    plan: dict[str, Any]
    processors: list[int]
    baseline: str | None = None
    baseline_failed: str | None = None
    reference: dict[str, Any] | None = None
    lost_s: float = 0.0
    busiest: dict[str, float] = field(default_factory=dict)
    import_s: float | None = None
    load_s: float | None = None
    first_call_s: float | None = None
    peak_rss_bytes: int | None = None
    shapes: list[dict[str, Any]] = field(default_factory=list)

    @cached_property
    def undisturbed_pairs(self) -> list[list[int]]:
        """For each shape the indices of its undisturbed pairs."""
        return [undisturbed(shape) for shape in self.shapes]
