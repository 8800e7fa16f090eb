"""Measure the latency of a variant paired with its baseline on the same machine.

The two are compared in alternating blocks, in two halves with new processes for the second. Two
processes of the same engine differ by several tenths of a percent throughout their lifetime: the
process loaded first was 0.5 to 0.9 % slower (docs/results/measurement.md). So each half has new
processes, loaded in the opposite order. `loads: 1` saves that time where a difference of one
percent does not matter.
"""

import hashlib
import math
import os
import random
import statistics
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

from msgspec import convert

from tightrope.artifacts.manifest import Artifacts, open_manifest
from tightrope.artifacts.manifest_types import EngineManifest
from tightrope.errors import WorkFailed
from tightrope.jobs.child import Child, Limits, failure, set_failure, supervised
from tightrope.jobs.progress import ProgressBar, Tell
from tightrope.machine.cores import frequency, pinned_processors
from tightrope.machine.interference import Block, QuietMachine, fewest_pairs, of_pair
from tightrope.measure.rounds import Clocks, Plan, Running, Stopwatch, block_sizes
from tightrope.measure.run import TimingSettings, batches_of, can_be_timed, facts_of_run
from tightrope.measure.timed_engine import TimedEngine, timed_engine
from tightrope.records.latency import LatencyRecord, Reference, StreamBlocks, TimedShape, Workload
from tightrope.statistics import SAMPLES_FOR_PERCENTILE, speedup

ROUNDS = 20
# about 5 ms per round on a CPU with SHA-256 instructions
WORK = bytes(8 << 20)
LIMITS = Limits(memory_bytes=8e9, seconds=120)
# roles of the engines, which prefix the reason of a failure
OWN, BASELINE = "", "baseline "
# pairs between two checks of the interval: checked after every pair, a comparison would stop at the
# first interval that is narrow by chance
LOOK = 10
# pairs that are measured however long they take: with a call each they tell a median
FEWEST_PAIRS = 12
# time after the limit at which measuring stops before the minima, if most pairs are disturbed
IN_VAIN_SECONDS = 5.0
FEWEST_IN_VAIN = 4

Kind = TypeVar("Kind")
Blocks = list[list[float]]
# time in which a worker that was killed ends
GRACE_SECONDS = 1.0


def with_value(
    known: list[Kind | None] | None, count: int, value: Kind | None
) -> list[Kind | None] | None:
    """Return the values of `count` blocks and of the next one; None where all are unknown."""
    if known is None and value is None:
        return None
    return [*(known or [None] * count), value]


class Comparison:
    """Pairs of blocks of a candidate and its baseline, if any, at one shape with one load.

    They are added to `shape`, after those of an earlier load. `names` are those of the engines, the
    candidate first. A fixed seed draws at random which engine goes first. Pairs that other load
    disturbed do not count and are measured again while time is left. Where the p99 of the
    candidate has a bound, its blocks have the calls that it takes.
    """

    def __init__(
        self, names: Sequence[str], index: int, plan: Plan, shape: TimedShape, threads: int
    ) -> None:
        self.index, self.plan, self.shape, self.threads = index, plan, shape, threads
        self.candidate, *others = names
        self.blocks = {self.candidate: shape.blocks_s}
        for baseline in others:
            self.blocks[baseline] = shape.baseline_blocks_s = shape.baseline_blocks_s or []
        self.before, self.spent = len(shape.pairs), shape.seconds
        self.draw = random.Random(f"{index}, {self.before}")
        self.block_s, self.counts = block_sizes(plan)
        bounds = plan.get("p99_ms")
        self.p99_s = (bounds[index] or 0.0) / 1000 if bounds else 0.0
        # the interval is checked every `LOOK` undisturbed pairs
        self.next_look, self.more_calls = plan["pairs"], 0
        self.used: list[Block] = []

    def clocks(self, workers: Mapping[str, Child]) -> dict[str, Stopwatch]:
        """Return a stopwatch of each worker, which goes on from an earlier load."""
        most = self.plan["max_seconds"]
        found = {name: Stopwatch(workers[name], most, own) for name, own in self.blocks.items()}
        # enough for a p99 of calls that take as long as its bound
        found[self.candidate].max_seconds = max(most, 2 * SAMPLES_FOR_PERCENTILE[99] * self.p99_s)
        return found

    def next_round(self, ready: Clocks, seconds: float) -> dict[str, int]:
        """Return the least calls of each engine, nothing where a pair gave a reason to stop."""
        if len(self.shape.pairs) > self.before and (stop := self.why(self.spent + seconds)):
            self.shape.stop = stop
            return {}
        calls = self.counts[len(self.shape.pairs) % len(self.counts)]
        return dict.fromkeys(ready, calls) | {self.candidate: max(calls, self.more_calls)}

    def keep(self, blocks: Mapping[str, Block], window: int) -> None:
        """Record a pair; `window` is the index in `foreign_cores`."""
        shape, measured = self.shape, len(self.shape.pairs)
        own, *_ = pair = [blocks[name] for name in self.blocks]
        for known, block in zip(self.blocks.values(), pair, strict=True):
            known.append(block.samples_s)
        shape.energy_j = with_value(shape.energy_j, measured, own.energy_j)
        shape.gpu = with_value(shape.gpu, measured, own.gpu)
        shape.pairs.append(of_pair(pair, self.threads, window))
        self.used += pair

    def why(self, seconds: float) -> str | None:
        """Return why measuring stops after `seconds` of all loads, None where it continues.

        `width`, `time limit` or `calls`; `minimum`: an engine measured alone has no interval and
        stops at the minima; `disturbed`: stopped before `FEWEST_PAIRS` are undisturbed, because an
        engine that other load slows down many times would take minutes for pairs that do not count.
        """
        plan, shape, measured = self.plan, self.shape, len(self.shape.pairs)
        if plan["calls"] is not None:
            return "calls" if measured == len(self.counts) else None
        kept, over_s = shape.undisturbed(), seconds - plan["comparison_seconds"]
        in_vain = measured >= FEWEST_IN_VAIN and 2 * len(kept) < measured
        fewest = plan.get("fewest", min(FEWEST_PAIRS, plan["pairs"]))
        if len(kept) < max(fewest, fewest_pairs(measured, plan)):
            return "disturbed" if in_vain and over_s >= IN_VAIN_SECONDS else None
        own, *theirs = ([one[index] for index in kept] for one in self.blocks.values())
        stop = "time limit" if over_s >= 0 else None
        if len(kept) >= self.next_look and sum(map(len, own)) >= plan["min_calls"]:
            found = speedup(own, *theirs) if theirs else None
            if found is None:
                stop = "minimum"
            elif (found.high - found.low) / found.value <= plan["width"]:
                stop = "width"
            self.next_look = len(kept) + LOOK
        wanted = stop and self.p99_s and not in_vain
        missing = missing_calls(own, self.p99_s) if wanted else 0
        self.more_calls = max(self.more_calls, missing)
        return None if missing else stop

    def share_done(self, seconds: float) -> float:
        """Return the share of the pairs to measure after `seconds` of this load, or of the time."""
        plan, pairs = self.plan, len(self.shape.pairs) - self.before
        if plan["calls"] is not None:
            return pairs / max(1, len(self.counts) - self.before)
        limit = plan["comparison_seconds"] - self.spent
        timed = seconds / limit if limit > 0 else 1.0
        return min(1.0, pairs / max(1, plan["pairs"] - self.before), timed)

    def add_use(self, running: Running) -> None:
        """Record what the candidate used, and the CPU share of workers between blocks.

        The highest value of both loads is kept.
        """
        own, *_ = [running.asked(name, "threads") for name in self.blocks]
        idle = sum(one.idle_s for one in self.used) / sum(one.seconds for one in self.used)
        shape = self.shape
        shape.threads_busy = max(own["busy"], shape.threads_busy)
        shape.cores_used = max(own["cores"], shape.cores_used)
        shape.idle_share = max(idle, shape.idle_share)


def missing_calls(blocks: Blocks, bound_s: float) -> int:
    """Return how many calls the next of `LOOK` more blocks needs so that a p99 is known.

    0 where it is known, or where the median is over its bound already.
    """
    samples = [seconds for block in blocks for seconds in block]
    if statistics.median(samples) > bound_s:
        return 0
    return -(-max(0, SAMPLES_FOR_PERCENTILE[99] - len(samples)) // LOOK)


def compare_loads(
    engines: dict[str, TimedEngine],
    shapes: Sequence[TimedShape],
    plan: Plan,
    threads: int,
    limits: Limits,
    machine: QuietMachine,
    streams: Sequence[int] = (),
) -> dict[str, float]:
    """Fill in each shape, of which the engines have an input; return facts of the loads.

    `engines` maps a role, which prefixes the reason of a failure, to an engine: "" to the
    candidate, and another role to the baseline, if any. Both have the same inputs. `plan` holds
    the `latency` settings, `machine` the time that may be lost to other load, over both loads;
    `streams` are for the candidate. The facts are `import_s` and `load_s` of the candidate's first
    load, and its `peak_rss_bytes`. Raises WorkFailed beyond the limits, and
    where calls of one engine exceed `max_seconds`.
    """
    began = time.monotonic()
    facts: dict[str, float] = {}
    running = Running(engines, limits, machine, named=True)
    candidate, *_ = names = list(engines)
    # of a second attempt without the baseline, the bar is another one
    step = "timing" if len(engines) > 1 else "timing alone"
    with ProgressBar(step, plan["loads"] * len(shapes)) as bar:
        for load, turn in enumerate((1, -1)[: plan["loads"]]):
            with running.loaded(names[::turn], began):
                facts = facts or running.loads[candidate]
                machine.wait()
                for index, shape in enumerate(shapes):
                    first = {one: running.asked(one, "first_call", index) for one in names[::turn]}
                    if shape.first_call_s is None:
                        shape.first_call_s = first[candidate]
                    half = second_half(plan, shape) if load else first_half(plan)
                    part = half if plan["loads"] > 1 else plan
                    pairs = Comparison(names, index, part, shape, threads)
                    compare(running, pairs, bar.after(load * len(shapes) + index))
                    measure_alone(running.workers[candidate], index, plan, shape, streams)
                peak = running.asked(candidate, "peak_rss_bytes")
                facts["peak_rss_bytes"] = max(peak, facts.get("peak_rss_bytes", 0))
    return facts


def compare(running: Running, pairs: Comparison, tell: Tell) -> None:
    """Warm the engines up, which is not kept, and time them; `tell` gets the share done.

    The shape of `pairs` may have what other workers measured there with the same engines.
    """
    began = time.monotonic()
    clocks = pairs.clocks(running.workers)
    warm_up, *_ = [clock.warm_up(pairs.index, pairs.plan) for clock in clocks.values()]
    pairs.shape.warmups.append(warm_up)
    for given in running.rounds(pairs, clocks, pairs.shape.foreign_cores, began):
        began += given
        tell(pairs.share_done(time.monotonic() - began))
    pairs.shape.seconds += time.monotonic() - began
    pairs.add_use(running)


def measure_alone(
    worker: Child, index: int, plan: Plan, shape: TimedShape, streams: Sequence[int]
) -> None:
    """Add what is measured of the candidate alone, after the blocks of a load."""
    if device := worker.ask("device", index):
        shape.device_s = [*(shape.device_s or []), *device]
    if block := worker.ask("long_block", index, plan["max_seconds"]):
        shape.long_blocks = [*(shape.long_blocks or []), block]
    shape.streams = on_streams(worker, index, plan, shape, streams)


def on_streams(
    worker: Child, index: int, plan: Plan, shape: TimedShape, streams: Sequence[int]
) -> list[StreamBlocks] | None:
    """Return blocks of calls on each number of `streams`, of both loads; None where there are none.

    Where an engine fails on several streams, such as for memory, `reason` says why, and its other
    measurements hold.
    """
    before = {one.streams: one for one in shape.streams or ()}
    found = []
    for count in streams:
        own = before.get(count) or StreamBlocks(streams=count)
        try:
            blocks: StreamBlocks | None = worker.ask("streams", index, count, plan["max_seconds"])
        except WorkFailed as error:
            worker.process.join(GRACE_SECONDS)
            if not worker.process.is_alive():
                raise
            own.reason = error.reason
        else:
            if blocks is None:
                continue
            own.calls += blocks.calls
            own.seconds += blocks.seconds
            own.gpu += blocks.gpu
        found.append(own)
    return found or None


def first_half(plan: Plan) -> Plan:
    """Return the target of the first of two loads: half of all minima, with blocks as long.

    The interval of half of the pairs may be wider by the square root of two.
    """
    half = {
        "width": math.sqrt(2) * plan["width"],
        "comparison_seconds": plan["comparison_seconds"] / 2,
    }
    if plan["calls"] is None:
        fewest = math.ceil(min(FEWEST_PAIRS, plan["pairs"]) / 2)
        return scaled(plan, math.ceil(plan["pairs"] / 2)) | half | {"fewest": fewest}
    sizes = block_sizes(plan)[1]
    first = sizes[: math.ceil(len(sizes) / 2)]
    return plan | {"pairs": len(first), "calls": sum(first)}


def second_half(plan: Plan, first: TimedShape) -> Plan:
    """Return the target of both loads: the second load measures at least as many pairs."""
    if plan["calls"] is not None:
        return plan
    kept = 2 * len(first.undisturbed())
    fewest = max(kept, min(FEWEST_PAIRS, plan["pairs"]))
    return scaled(plan, max(plan["pairs"], kept)) | {"fewest": fewest}


def scaled(plan: Plan, pairs: int) -> Plan:
    """Return the plan with another minimum number of pairs, and blocks of unchanged length."""
    share = pairs / plan["pairs"]
    return plan | {
        "pairs": pairs,
        "min_seconds": share * plan["min_seconds"],
        "min_calls": math.ceil(share * plan["min_calls"]),
    }


def reference_workload(processors: list[int]) -> Workload:
    """Return the current speed of these processors, measured in a child process."""
    rounds = supervised(timed_rounds, processors, limits=LIMITS)
    return Workload(
        rounds_s=rounds,
        load_average=os.getloadavg()[0],
        frequency_khz=[frequency(number) for number in processors],
    )


def timed_rounds(processors: list[int]) -> list[float]:
    """Return, in the child, the seconds of each round after a warm-up round."""
    os.sched_setaffinity(0, processors)
    samples = []
    with ThreadPoolExecutor(len(processors)) as pool:
        for _ in range(ROUNDS + 1):
            began = time.perf_counter()
            list(pool.map(lambda _: hashlib.sha256(WORK).digest(), processors))
            samples.append(time.perf_counter() - began)
    return samples[1:]


def measure_latency(
    artifacts: Artifacts,
    baseline: Path | str,
    target: Path | str,
    settings: TimingSettings,
    *,
    judged: Path | str | None = None,
) -> None:
    """Write the LatencyRecord of a variant, also if it cannot be measured.

    `baseline` is the engine.json of an engine of the same model, or of a model with the same inputs
    and classes. For the baseline itself it is its own engine.json. The baseline, and a variant
    whose baseline fails, are measured alone. A variant that has failed or collapsed by its record
    of accuracy, `judged`, is not timed. A transient failure raises TightropeError unless this is
    the last attempt.
    """
    execution = settings.execution
    record = LatencyRecord(
        **facts_of_run(artifacts, execution),
        threads=execution.threads,
        plan=settings.plan,
        processors=pinned_processors(execution.threads),
    )
    if not can_be_timed(record, artifacts.engine, judged):
        return record.write(target)
    beside = open_manifest(baseline, EngineManifest)
    if beside["status"] != "ok":
        record.baseline_failed = f"not built: {beside['reason']}"
    elif artifacts.engine != Path(baseline):
        record.baseline = beside["variant"]
    machine = settings.machine(record.processors)
    before = reference_workload(record.processors)
    engines = {OWN: artifacts.engine} | ({BASELINE: Path(baseline)} if record.baseline else {})
    try:
        time_engines(record, artifacts, engines, settings, machine)
    except WorkFailed as error:
        record.shapes = []
        set_failure(record, error, record.variant, execution.limits)
    record.lost_s, record.busiest = machine.lost_s, machine.busiest
    record.reference = Reference(before=before, after=reference_workload(record.processors))
    record.write(target)


def time_engines(
    record: LatencyRecord,
    artifacts: Artifacts,
    engines: Mapping[str, Path],
    settings: TimingSettings,
    machine: QuietMachine,
) -> None:
    """Fill in `record` for all shapes, paired with the baseline, or alone if that fails.

    `engines` are by role; each has one process per load, and they share the memory limit of the
    job. Raises WorkFailed where the variant itself fails.
    """
    limits, threads = settings.execution.limits, record.threads
    batches = batches_of(settings, artifacts.checkpoint, artifacts.data)
    timed = {
        role: timed_engine(path, artifacts.checkpoint, batches, threads=threads)
        for role, path in engines.items()
    }
    shared = replace(limits, memory_bytes=limits.memory_bytes / len(engines))
    record.shapes = convert(settings.shapes, list[TimedShape])
    known = record.shapes, record.plan, threads, shared, machine, settings.streams
    try:
        facts = compare_loads(timed, *known)
    except WorkFailed as error:
        if error.role != BASELINE:
            raise
        failure(error, record.variant, limits)
        record.baseline, record.baseline_failed = None, error.reason
        alone = {OWN: engines[OWN]}
        return time_engines(record, artifacts, alone, settings, machine)
    for name, value in facts.items():
        setattr(record, name, value)
    record.first_call_s = record.shapes[0].first_call_s
