"""Record of latency, its energy, and the changes of machine speed between records."""

import math
import statistics
from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from typing import Any

from msgspec import Struct

from tightrope.machine.host import host_key
from tightrope.machine.interference import (
    Counters,
    GpuState,
    disturbance,
    fewest_pairs,
    gpu_disturbance,
)
from tightrope.records.record import Kept, Sized, TimedRecord, WarmUp, kept_of
from tightrope.statistics import Interval, speedup

# share of a change of machine speed that shows in the ratio of two engines:
# docs/results/decision.md
DRIFT_SHARE = 0.3
# fewest jobs for an estimate of the spread
FEWEST_JOBS = 3
# the engine that is loaded first stays slower than the second; two loads in opposite order average
# this out, one load does not: standard deviation of the log ratio, same document
LOAD_ORDER_STD = 0.012
Group = tuple[str, str, str]


class Workload(Struct, kw_only=True, forbid_unknown_fields=True):
    """The speed of processors at a fixed workload.

    `rounds_s`: seconds of each of 20 rounds in which all processors hash the same 8 MiB (SHA-256)
    in parallel. `load_average`: that of the last minute, including this program.
    `frequency_khz`: of each processor, None where the kernel does not report it.
    """

    rounds_s: list[float]
    load_average: float = 0.0
    frequency_khz: list[int | None] = []


class Reference(Struct, kw_only=True, forbid_unknown_fields=True):
    """The fixed workload before and after a measurement."""

    before: Workload
    after: Workload


class LongBlock(Struct, kw_only=True, forbid_unknown_fields=True):
    """Calls for as long as a GPU's energy counter needs, see `TimedEngine.long_block`."""

    energy_j: float | None = None
    calls: int
    gpu: GpuState | None = None


class StreamBlocks(Struct, kw_only=True, forbid_unknown_fields=True):
    """Calls on several streams of a GPU; `reason` says why they failed, None where they did not.

    Each list has a value per block: `calls` that ended in its `seconds`, and the state of the GPU
    after it.
    """

    streams: int
    reason: str | None = None
    calls: list[int] = []
    seconds: list[float] = []
    gpu: list[GpuState | None] = []


class TimedShape(Sized, kw_only=True):
    """Times at one shape; `first_call_s` is that of the first load.

    - `blocks_s` and `baseline_blocks_s`, one list of seconds per call for each block; blocks of the
      same index were measured next to each other. None where there is no baseline beside;
    - `device_s`, seconds of calls on inputs that are on the GPU, None on the CPU;
    - `energy_j`, joules of each of `blocks_s`, None where the machine shows no energy or each block
      is too short; `long_blocks`, one per load, from which the energy on a GPU comes, else None;
    - `gpu`, the state of the GPU directly after each of `blocks_s`, None on the CPU;
    - `streams`, for each number of streams that was asked for, else None;
    - `pairs`, the counters of each pair, and `foreign_cores`, the cores that other programs used in
      each window;
    - `warmups`, one per load of the engine;
    - `seconds` of the measurement and why it ended, `stop`;
    - `threads_busy` and `cores_used` in the blocks of the candidate, and `idle_share`, the CPU
      share of engines between their blocks.
    """

    first_call_s: float | None = None
    blocks_s: list[list[float]] = []
    baseline_blocks_s: list[list[float]] | None = None
    device_s: list[float] | None = None
    energy_j: list[float | None] | None = None
    gpu: list[GpuState | None] | None = None
    long_blocks: list[LongBlock] | None = None
    streams: list[StreamBlocks] | None = None
    pairs: list[Counters] = []
    foreign_cores: list[float | None] = []
    warmups: list[WarmUp] = []
    seconds: float = 0.0
    stop: str = ""
    threads_busy: int = 0
    cores_used: float = 0.0
    idle_share: float = 0.0

    def undisturbed(self) -> list[int]:
        """Return the indices of the pairs that other load did not disturb."""
        pairs, windows = enumerate(self.pairs), self.foreign_cores
        return [index for index, pair in pairs if disturbance(pair, windows) is None]


class LatencyRecord(TimedRecord, kw_only=True, dict=True):
    """Times of one variant, and of its baseline in alternating blocks.

    `baseline` and its blocks are None for the baseline itself, or where the baseline cannot run:
    then `baseline_failed` has the reason. `plan` holds the `latency` settings, `processors` those
    that both processes were pinned to, `reference` the fixed workload before and after.

    `undisturbed_pairs` are computed once: no shape changes.
    """

    plan: dict[str, Any]
    processors: list[int]
    baseline: str | None = None
    baseline_failed: str | None = None
    reference: Reference | None = None
    import_s: float | None = None
    load_s: float | None = None
    first_call_s: float | None = None
    peak_rss_bytes: int | None = None
    shapes: list[TimedShape] = []

    @cached_property
    def undisturbed_pairs(self) -> list[list[int]]:
        """For each shape the indices of its undisturbed pairs."""
        return [shape.undisturbed() for shape in self.shapes]


def kept_pairs(
    record: LatencyRecord,
    place: int,
    why: Callable[[int, int], str] = lambda quiet, fewest: f"{quiet} of {fewest} pairs",
    *,
    accept: bool = False,
) -> Kept[int]:
    """Return which pairs of a shape count, by their index, see `kept_of`.

    `place` is that of the shape; `why` is told how many are undisturbed, and have to be.
    """
    quiet, pairs = record.undisturbed_pairs[place], range(len(record.shapes[place].pairs))
    fewest = fewest_pairs(len(pairs), record.plan)
    return kept_of(pairs, quiet, fewest, lambda: why(len(quiet), fewest), accept=accept)


def joules_per_call(shape: TimedShape, kept: Sequence[int]) -> float | None:
    """Return the joules per call over the blocks `kept`, None where they are unknown.

    On a GPU they come from the long blocks instead, of which those count in which it was neither
    slowed down nor shared. They are those of all packages of processors, or of the whole GPU.
    """
    if not kept:
        return None
    if shape.long_blocks:
        free = [one for one in shape.long_blocks if gpu_disturbance(one.gpu) is None]
        blocks = [(one.energy_j, one.calls) for one in free]
    else:
        joules = shape.energy_j or [None] * len(shape.blocks_s)
        blocks = [(joules[index], len(shape.blocks_s[index])) for index in kept]
    known = [(joules, calls) for joules, calls in blocks if joules is not None]
    if not known:
        return None
    return sum(joules for joules, _ in known) / sum(calls for _, calls in known)


def paired_speedup(
    record: LatencyRecord, place: int, pairs: Sequence[int], spread: float
) -> Interval | None:
    """Return the speed-up over the baseline in these pairs of a shape, by their index.

    None without a baseline in them. `spread` is that of the machine, see `MachineSpeed`.
    """
    shape, loads = record.shapes[place], record.plan["loads"]
    if shape.baseline_blocks_s is None:
        return None
    both = (shape.blocks_s, shape.baseline_blocks_s)
    own, theirs = ([blocks[index] for index in pairs] for blocks in both)
    return speedup(own, theirs, loads=loads, unsteady=drift_std(spread, loads))


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
                blocks = shape.baseline_blocks_s or shape.blocks_s
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
