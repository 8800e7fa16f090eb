"""Compare two engines in alternating blocks, in two halves with new processes for the second.

Two processes of the same engine differ by several tenths of a percent throughout their lifetime:
the process loaded first was 0.5 to 0.9 % slower (docs/results/2026-11-21-measurement.md). So each
half has new processes, loaded in the opposite order. `loads: 1` saves that time where a difference
of one percent does not matter.
"""

import math
import random
import statistics
import time
from collections.abc import Sequence
from contextlib import ExitStack
from typing import Any, TypeVar

from tightrope.errors import WorkFailed
from tightrope.jobs.child import Child, Limits, cpu_seconds
from tightrope.jobs.progress import ProgressBar, Tell, untold
from tightrope.machine.interference import Block, Windows, fewest_pairs, of_pair
from tightrope.machine.quiet import QuietMachine
from tightrope.measure.blocks import Plan, Stopwatch, block_sizes, lost_to_other_load
from tightrope.measure.timed_engine import TimedEngine
from tightrope.records.latency import StreamBlocks, TimedShape
from tightrope.statistics import SAMPLES_FOR_PERCENTILE, speedup

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


def compare(
    workers: list[Child],
    index: int,
    plan: Plan,
    shape: TimedShape,
    *,
    threads: int,
    machine: QuietMachine,
    tell: Tell = untold,
) -> None:
    """Time inputs `index` on one worker, or on two in alternating blocks; add them to `shape`.

    It continues what other workers measured there with the same engines. `plan` holds the
    `latency` settings.

    Warm-up comes first and is not kept. Pairs of blocks follow; a fixed seed draws at random which
    engine goes first. Pairs that other load disturbed do not count and are measured again while
    time is left. Time lost to other load is given back, up to the rest of the budget of `machine`.
    `tell` gets the share done. Raises WorkFailed where calls of one engine exceed `max_seconds`.
    """
    spent, before = shape.seconds, len(shape.pairs)
    began = time.monotonic() - spent
    comparison = Comparison(workers, index, plan, threads, shape)
    windows = Windows(machine.processors, lambda: cpu_seconds(workers))
    windows.cores = shape.foreign_cores
    stop, rule = None, StopRule(plan, p99_bound(plan, index))
    while stop is None:
        comparison.measure_pair(windows.index, rule.more_calls)
        began += lost_to_other_load(windows, machine)
        seconds = time.monotonic() - began
        stop = rule.why(shape, seconds)
        tell(rule.share_done(len(shape.pairs), seconds, before, spent))
    windows.close_when_due(last=True)
    shape.stop, shape.seconds = stop, time.monotonic() - began
    comparison.add_use()


class Comparison:
    """Pairs of blocks of one or two engines; creating it warms up the engines."""

    def __init__(
        self, workers: list[Child], index: int, plan: Plan, threads: int, shape: TimedShape
    ) -> None:
        self.workers = workers
        self.index = index
        self.threads = threads
        self.shape = shape
        if len(workers) > 1 and shape.baseline_blocks_s is None:
            shape.baseline_blocks_s = []
        self.blocks = blocks_of(shape)
        self.order = random.Random(f"{index}, {len(shape.pairs)}")
        self.clocks = [
            Stopwatch(worker, plan["max_seconds"], own)
            for worker, own in zip(workers, self.blocks, strict=True)
        ]
        # enough for a p99 of calls that take as long as its bound
        own_s = 2 * SAMPLES_FOR_PERCENTILE[99] * p99_bound(plan, index)
        self.clocks[0].max_seconds = max(plan["max_seconds"], own_s)
        warm_up, *_ = [clock.warm_up(index, plan) for clock in self.clocks]
        shape.warmups.append(warm_up)
        self.seconds, self.counts = block_sizes(plan)
        self.used: list[Block] = []

    def measure_pair(self, window: int, more: int = 0) -> None:
        """Measure a block of each engine in random order; `window` is the index in `Windows`.

        The block of the candidate has at least `more` calls.
        """
        shape, measured = self.shape, len(self.shape.pairs)
        calls = self.counts[measured % len(self.counts)]
        found: dict[int, Block] = {}
        for which in self.order.sample(range(len(self.clocks)), len(self.clocks)):
            wanted = calls if which else max(calls, more)
            found[which] = self.clocks[which].block(self.index, self.seconds, wanted)
        pair = [found[which] for which in sorted(found)]
        for own, block in zip(self.blocks, pair, strict=True):
            own.append(block.samples_s)
        shape.energy_j = with_value(shape.energy_j, measured, pair[0].energy_j)
        shape.gpu = with_value(shape.gpu, measured, pair[0].gpu)
        shape.pairs.append(of_pair(pair, self.threads, window))
        self.used += pair

    def add_use(self) -> None:
        """Record what the candidate used, and the CPU share of workers between blocks.

        The highest value of both loads is kept.
        """
        own, *_ = [worker.ask("threads") for worker in self.workers]
        idle = sum(one.idle_s for one in self.used) / sum(one.seconds for one in self.used)
        shape = self.shape
        shape.threads_busy = max(own["busy"], shape.threads_busy)
        shape.cores_used = max(own["cores"], shape.cores_used)
        shape.idle_share = max(idle, shape.idle_share)


def blocks_of(shape: TimedShape) -> list[Blocks]:
    """Return the blocks of the candidate, and of the baseline if there is one."""
    beside = shape.baseline_blocks_s
    return [shape.blocks_s] if beside is None else [shape.blocks_s, beside]


def with_value(
    known: list[Kind | None] | None, count: int, value: Kind | None
) -> list[Kind | None] | None:
    """Return the values of `count` blocks and of the next one; None where all are unknown."""
    if known is None and value is None:
        return None
    return [*(known or [None] * count), value]


class StopRule:
    """Stop rule of a comparison, by `plan` and the bound of the candidate's p99, 0 for none.

    The interval is checked every `LOOK` undisturbed pairs. `more_calls` are those that the next
    block of the candidate has to have for its p99.
    """

    def __init__(self, plan: Plan, p99_bound_s: float = 0.0) -> None:
        self.plan = plan
        self.p99_bound_s = p99_bound_s
        self.next_look = plan["pairs"]
        self.more_calls = 0

    def why(self, shape: TimedShape, seconds: float) -> str | None:
        """Return why measuring stops after `seconds`, None where it continues.

        `width`, `time limit` or `calls`; `minimum`: an engine measured alone has no interval and
        stops at the minima; `disturbed`: stopped before `FEWEST_PAIRS` are undisturbed, because an
        engine that other load slows down many times would take minutes for pairs that do not count.
        """
        plan, measured = self.plan, len(shape.pairs)
        if plan["calls"] is not None:
            return "calls" if measured == len(block_sizes(plan)[1]) else None
        kept, over_s = shape.undisturbed(), seconds - plan["comparison_seconds"]
        in_vain = measured >= FEWEST_IN_VAIN and 2 * len(kept) < measured
        fewest = plan.get("fewest", min(FEWEST_PAIRS, plan["pairs"]))
        if len(kept) < max(fewest, fewest_pairs(measured, plan)):
            return "disturbed" if in_vain and over_s >= IN_VAIN_SECONDS else None
        own, *theirs = ([one[index] for index in kept] for one in blocks_of(shape))
        stop = "time limit" if over_s >= 0 else None
        if len(kept) >= self.next_look and sum(map(len, own)) >= plan["min_calls"]:
            if not theirs:
                stop = "minimum"
            elif width(own, *theirs) <= plan["width"]:
                stop = "width"
            self.next_look = len(kept) + LOOK
        wanted = stop and self.p99_bound_s and not in_vain
        missing = missing_calls(own, self.p99_bound_s) if wanted else 0
        self.more_calls = max(self.more_calls, missing)
        return None if missing else stop

    def share_done(self, pairs: int, seconds: float, before: int, spent: float) -> float:
        """Return the share of the pairs to measure, or of the time if less.

        `before` pairs in `spent` seconds are those of earlier workers.
        """
        plan = self.plan
        if plan["calls"] is not None:
            return (pairs - before) / max(1, len(block_sizes(plan)[1]) - before)
        measured = (pairs - before) / max(1, plan["pairs"] - before)
        limit = plan["comparison_seconds"]
        timed = (seconds - spent) / (limit - spent) if limit > spent else 1.0
        return min(1.0, measured, timed)


def p99_bound(plan: Plan, index: int) -> float:
    """Return the bound of the candidate's p99 at a shape in seconds, 0 where there is none."""
    bounds = plan.get("p99_ms")
    return (bounds[index] or 0.0) / 1000 if bounds else 0.0


def missing_calls(blocks: Blocks, bound_s: float) -> int:
    """Return how many calls the next of `LOOK` more blocks needs so that a p99 is known.

    0 where it is known, or where the median is over its bound already.
    """
    samples = [seconds for block in blocks for seconds in block]
    if statistics.median(samples) > bound_s:
        return 0
    return -(-max(0, SAMPLES_FOR_PERCENTILE[99] - len(samples)) // LOOK)


def width(own: list[list[float]], theirs: list[list[float]]) -> float:
    """Return the width of the confidence interval relative to the speed-up."""
    interval = speedup(own, theirs)
    return (interval.high - interval.low) / interval.value


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
    load, and its `peak_rss_bytes`. Raises WorkFailed as `compare` does, or beyond the limits.
    """
    began = time.monotonic()
    facts: dict[str, float] = {}
    # of a second attempt without the baseline, the bar is another one
    step = "timing" if len(engines) > 1 else "timing alone"
    with ProgressBar(step, plan["loads"] * len(shapes)) as bar:
        for load, turn in enumerate((1, -1)[: plan["loads"]]):
            with ExitStack() as stack:
                workers = [
                    stack.enter_context(Child(engine, limits, role, began))
                    for role, engine in engines.items()
                ]
                loads = {worker: worker.ask("load") for worker in workers[::turn]}
                facts = facts or loads[workers[0]]
                machine.wait()
                for index, shape in enumerate(shapes):
                    first = {worker: worker.ask("first_call", index) for worker in workers[::turn]}
                    if shape.first_call_s is None:
                        shape.first_call_s = first[workers[0]]
                    half = second_half(plan, shape) if load else first_half(plan)
                    part = half if plan["loads"] > 1 else plan
                    tell = bar.after(load * len(shapes) + index)
                    quiet: dict[str, Any] = {"threads": threads, "machine": machine}
                    compare(workers, index, part, shape, tell=tell, **quiet)
                    measure_alone(workers[0], index, plan, shape, streams)
                peak = workers[0].ask("peak_rss_bytes")
                facts["peak_rss_bytes"] = max(peak, facts.get("peak_rss_bytes", 0))
    return facts


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
