"""Record of latency, its energy, and the changes of machine speed between records."""

import math
import statistics
from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import Any, ClassVar, TypedDict

from tightrope.machine.host import host_key
from tightrope.machine.interference import gpu_disturbance, undisturbed
from tightrope.records.record import Counters, Record, Sized, WarmUp

Facts = dict[str, Any]
# share of a change of machine speed that shows in the ratio of two engines:
# docs/results/decision.md
DRIFT_SHARE = 0.3
# fewest jobs for an estimate of the spread
FEWEST_JOBS = 3
# the engine that is loaded first stays slower than the second; two loads in opposite order average
# this out, one load does not: standard deviation of the log ratio, same document
LOAD_ORDER_STD = 0.012
Group = tuple[str, str, str]


class GpuState(TypedDict, total=False):
    """State of a GPU directly after a block, see `nvml.GpuState.read`."""

    sm_clock_mhz: int | None
    memory_clock_mhz: int | None
    temperature_c: int | None
    power_w: float | None
    throttled: list[str] | None
    application_clocks: bool | None
    other_processes: int | None
    computing_processes: int | None
    memory_bytes: int | None


class LongBlock(TypedDict, total=False):
    """Calls for as long as a GPU's energy counter needs, see `TimedEngine.long_block`."""

    energy_j: float | None
    calls: int
    gpu: GpuState | None


class StreamBlocks(TypedDict, total=False):
    """Calls on several streams of a GPU, see `measure.streams`: a value per block in each list."""

    streams: int
    reason: str | None
    calls: list[int]
    seconds: list[float]
    gpu: list[GpuState | None]


class TimedShape(Sized, total=False):
    """An entry of `shapes` of a LatencyRecord."""

    first_call_s: float | None
    blocks_s: list[list[float]]
    baseline_blocks_s: list[list[float]] | None
    device_s: list[float] | None
    energy_j: list[float | None] | None
    gpu: list[GpuState | None] | None
    long_blocks: list[LongBlock] | None
    streams: list[StreamBlocks] | None
    pairs: list[Counters]
    foreign_cores: list[float | None]
    warmups: list[WarmUp]
    seconds: float
    stop: str
    threads_busy: int | None
    cores_used: float | None
    idle_share: float | None


class LatencyRecord(Record, kw_only=True, dict=True):
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
    busiest: dict[str, float] = {}
    import_s: float | None = None
    load_s: float | None = None
    first_call_s: float | None = None
    peak_rss_bytes: int | None = None
    shapes: list[dict[str, Any]] = []

    @cached_property
    def undisturbed_pairs(self) -> list[list[int]]:
        """For each shape the indices of its undisturbed pairs."""
        return [undisturbed(shape) for shape in self.shapes]


def joules_per_call(shape: Facts, kept: Sequence[int]) -> float | None:
    """Return the joules per call over the blocks `kept`, None where they are unknown.

    On a GPU they come from the long blocks instead, of which those count in which it was neither
    slowed down nor shared. They are those of all packages of processors, or of the whole GPU.
    """
    if not kept:
        return None
    if shape.get("long_blocks"):
        blocks = [
            (block["energy_j"], block["calls"])
            for block in shape["long_blocks"]
            if gpu_disturbance(block["gpu"] or {}) is None
        ]
    else:
        joules = shape.get("energy_j") or [None] * len(shape["blocks_s"])
        blocks = [(joules[index], len(shape["blocks_s"][index])) for index in kept]
    known = [(joules, calls) for joules, calls in blocks if joules is not None]
    if not known:
        return None
    return sum(joules for joules, _ in known) / sum(calls for _, calls in known)


class MachineSpeed:
    """Changes in the time of the baseline between the jobs of a run.

    Each job times its variant paired with the same baseline, which is thus measured repeatedly. At
    other times the machine may run at another speed, because of neighbours of a virtual machine or
    its clock. Engines react differently (memory-bound or compute-bound), so the ratio of two
    engines varies from minute to minute by more than the pairs of a single job show.
    """

    def __init__(self, records: Iterable[LatencyRecord]) -> None:
        logs: dict[tuple[Group, int], list[float]] = {}
        for record in records:
            group = group_of(record)
            for place, shape in enumerate(record.shapes):
                blocks = shape["baseline_blocks_s"] or shape["blocks_s"]
                kept = [statistics.median(blocks[at]) for at in record.undisturbed_pairs[place]]
                if kept:
                    logs.setdefault((group, place), []).append(math.log(statistics.median(kept)))
        # once per group, not for each of its records
        self.spreads = {
            key: statistics.stdev(known) for key, known in logs.items() if len(known) >= FEWEST_JOBS
        }

    def spread(self, record: LatencyRecord, place: int) -> float:
        """Return the standard deviation over jobs of the log of the baseline's time at a shape.

        0 where fewer than `FEWEST_JOBS` measured it.
        """
        return self.spreads.get((group_of(record), place), 0.0)


def drift_std(spread: float, loads: int) -> float:
    """Return the standard deviation of the log of a speed-up that its pairs of blocks do not show.

    `spread` is that of the machine, `loads` how many times each engine was loaded.
    """
    return math.hypot(DRIFT_SHARE * spread, LOAD_ORDER_STD if loads == 1 else 0.0)


def group_of(record: LatencyRecord) -> Group:
    """Return the key of jobs with comparable times: model, host and baseline."""
    return record.model, host_key(record.host), record.baseline or record.variant
