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
from typing import Any

from tightrope.errors import WorkFailed
from tightrope.jobs.child import Child, Limits, cpu_seconds
from tightrope.jobs.progress import ProgressBar, Tell, untold
from tightrope.machine.interference import Windows, fewest_pairs, of_pair, undisturbed
from tightrope.machine.quiet import QuietMachine
from tightrope.measure.blocks import Plan, Stopwatch, block_sizes, lost_to_other_load
from tightrope.measure.timed_engine import TimedEngine
from tightrope.statistics import SAMPLES_FOR_PERCENTILE, speedup

# pairs between two checks of the interval: checked after every pair, a comparison would stop at the
# first interval that is narrow by chance
LOOK = 10
# pairs that are measured however long they take: with a call each they tell a median
FEWEST_PAIRS = 12
# time after the limit at which measuring stops before the minima, if most pairs are disturbed
IN_VAIN_SECONDS = 5.0
FEWEST_IN_VAIN = 4

Shape = dict[str, Any]
Blocks = list[list[float]]
NAMES = ("blocks_s", "baseline_blocks_s")
# what is kept of each block of the candidate: None where all are unknown
OF_BLOCKS = ("energy_j", "gpu")
# facts of each load of the engines: the record keeps the highest value
FACTS = ("threads_busy", "cores_used", "idle_share")
# time in which a worker that was killed ends
GRACE_SECONDS = 1.0


def compare(
    workers: list[Child],
    index: int,
    plan: Plan,
    *,
    threads: int,
    machine: QuietMachine,
    earlier: Shape | None = None,
    tell: Tell = untold,
) -> Shape:
    """Time inputs `index` on one worker, or on two in alternating blocks.

    Return a shape of a LatencyRecord, without its size. It continues the `earlier` shape, which
    other workers measured with the same engines. `plan` holds the `latency` settings.

    Warm-up comes first and is not kept. Pairs of blocks follow; a fixed seed draws at random which
    engine goes first. Pairs that other load disturbed do not count and are measured again while
    time is left. Time lost to other load is given back, up to the rest of the budget of `machine`.
    `tell` gets the share done. Raises WorkFailed where calls of one engine exceed `max_seconds`.
    """
    earlier = earlier or {}
    began = time.monotonic() - earlier.get("seconds", 0.0)
    comparison = Comparison(workers, index, plan, threads, earlier)
    windows = Windows(machine.processors, lambda: cpu_seconds(workers))
    windows.cores = comparison.foreign_cores
    stop, rule = None, StopRule(plan, p99_bound(plan, index))
    while stop is None:
        comparison.measure_pair(windows.index, rule.more_calls)
        began += lost_to_other_load(windows, machine)
        stop = rule.why(comparison.blocks, comparison.shape(), time.monotonic() - began)
        tell(rule.share_done(len(comparison.pairs), time.monotonic() - began, earlier))
    windows.close_when_due(last=True)
    shape = {
        **comparison.shape(),
        "warmups": [*earlier.get("warmups", ()), comparison.warmup],
        "stop": stop,
        "seconds": time.monotonic() - began,
        **comparison.facts(),
    }
    return shape | {name: max(shape[name], earlier.get(name, 0)) for name in FACTS}


class Comparison:
    """Pairs of blocks of one or two engines; creating it warms up the engines."""

    def __init__(
        self, workers: list[Child], index: int, plan: Plan, threads: int, earlier: Shape
    ) -> None:
        self.workers = workers
        self.index = index
        self.threads = threads
        self.blocks: list[Blocks] = [
            list(earlier.get(name, ())) for name, _ in zip(NAMES, workers, strict=False)
        ]
        self.pairs: list[dict[str, Any]] = list(earlier.get("pairs", ()))
        self.foreign_cores: list[float | None] = list(earlier.get("foreign_cores", ()))
        self.of_blocks: dict[str, list[Any]] = {
            name: list(earlier.get(name) or [None] * len(self.pairs)) for name in OF_BLOCKS
        }
        self.order = random.Random(f"{index}, {len(self.pairs)}")
        self.clocks = [
            Stopwatch(worker, plan["max_seconds"], own)
            for worker, own in zip(workers, self.blocks, strict=True)
        ]
        # enough for a p99 of calls that take as long as its bound
        own_s = 2 * SAMPLES_FOR_PERCENTILE[99] * p99_bound(plan, index)
        self.clocks[0].max_seconds = max(plan["max_seconds"], own_s)
        self.warmup, *_ = [clock.warm_up(index, plan) for clock in self.clocks]
        self.seconds, self.counts = block_sizes(plan)
        self.used: list[dict[str, Any]] = []

    def measure_pair(self, window: int, more: int = 0) -> None:
        """Measure a block of each engine in random order; `window` is the index in `Windows`.

        The block of the candidate has at least `more` calls.
        """
        calls = self.counts[len(self.pairs) % len(self.counts)]
        pair: list[dict[str, Any]] = [{} for _ in self.workers]
        for which in self.order.sample(range(len(pair)), len(pair)):
            wanted = calls if which else max(calls, more)
            pair[which] = self.clocks[which].block(self.index, self.seconds, wanted)
        for own, block in zip(self.blocks, pair, strict=True):
            own.append(block["samples_s"])
        for name, values in self.of_blocks.items():
            values.append(pair[0][name])
        self.used += pair
        self.pairs.append(of_pair(pair, self.threads, window))

    def shape(self) -> Shape:
        """Return the pairs measured so far as fields of a shape."""
        measured = {"pairs": self.pairs, "foreign_cores": self.foreign_cores}
        known = {
            name: values if any(value is not None for value in values) else None
            for name, values in self.of_blocks.items()
        }
        blocks = dict.fromkeys(NAMES) | dict(zip(NAMES, self.blocks, strict=False))
        return measured | known | blocks

    def facts(self) -> dict[str, float]:
        """Return what the candidate used, and the CPU share of workers between blocks."""
        own, *_ = [worker.ask("threads") for worker in self.workers]
        idle, seconds = (sum(one[name] for one in self.used) for name in ("idle_s", "seconds"))
        return {
            "threads_busy": own["busy"],
            "cores_used": own["cores"],
            "idle_share": idle / seconds,
        }


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

    def why(self, blocks: list[list[list[float]]], shape: Shape, seconds: float) -> str | None:
        """Return why measuring stops, None where it continues; `blocks` are those of each engine.

        `width`, `time limit` or `calls`; `minimum`: an engine measured alone has no interval and
        stops at the minima; `disturbed`: stopped before `FEWEST_PAIRS` are undisturbed, because an
        engine that other load slows down many times would take minutes for pairs that do not count.
        """
        plan, measured = self.plan, len(shape["pairs"])
        if plan["calls"] is not None:
            return "calls" if measured == len(block_sizes(plan)[1]) else None
        kept, over_s = undisturbed(shape), seconds - plan["comparison_seconds"]
        in_vain = measured >= FEWEST_IN_VAIN and 2 * len(kept) < measured
        fewest = plan.get("fewest", min(FEWEST_PAIRS, plan["pairs"]))
        if len(kept) < max(fewest, fewest_pairs(measured, plan)):
            return "disturbed" if in_vain and over_s >= IN_VAIN_SECONDS else None
        own, *theirs = ([one[index] for index in kept] for one in blocks)
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

    def share_done(self, pairs: int, seconds: float, earlier: Shape) -> float:
        """Return the share of the pairs to measure after `earlier`, or of the time if less."""
        before, plan = len(earlier.get("pairs", ())), self.plan
        if plan["calls"] is not None:
            return (pairs - before) / max(1, len(block_sizes(plan)[1]) - before)
        measured = (pairs - before) / max(1, plan["pairs"] - before)
        spent, limit = earlier.get("seconds", 0.0), plan["comparison_seconds"]
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
    plan: Plan,
    threads: int,
    limits: Limits,
    machine: QuietMachine,
    streams: Sequence[int] = (),
) -> tuple[list[Shape], dict[str, float]]:
    """Return a shape of a LatencyRecord per input, without its size, and facts of the loads.

    `engines` maps a role, which prefixes the reason of a failure, to an engine: "" to the
    candidate, and another role to the baseline, if any. Both have the same inputs. `plan` holds
    the `latency` settings, `machine` the time that may be lost to other load, over both loads;
    `streams` are for the candidate. The facts are `import_s` and `load_s` of the candidate's first
    load, and its `peak_rss_bytes`. Raises WorkFailed as `compare` does, or beyond the limits.
    """
    began = time.monotonic()
    shapes: list[Shape] = [{} for _ in engines[""].inputs]
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
                for index, earlier in enumerate(shapes):
                    first = {worker: worker.ask("first_call", index) for worker in workers[::turn]}
                    half = second_half(plan, earlier) if earlier else first_half(plan)
                    part = half if plan["loads"] > 1 else plan
                    quiet: dict[str, Any] = {"threads": threads, "machine": machine}
                    tell = bar.after(load * len(shapes) + index)
                    shape = compare(workers, index, part, earlier=earlier, tell=tell, **quiet)
                    shape |= measured_alone(workers[0], index, plan, earlier, streams)
                    shapes[index] = {"first_call_s": first[workers[0]], **earlier, **shape}
                peak = workers[0].ask("peak_rss_bytes")
                facts["peak_rss_bytes"] = max(peak, facts.get("peak_rss_bytes", 0))
    return shapes, facts


def measured_alone(
    worker: Child, index: int, plan: Plan, earlier: Shape, streams: Sequence[int]
) -> Shape:
    """Return what is measured of the candidate alone, after a shape's blocks, of both loads."""
    device = worker.ask("device", index) or []
    block = worker.ask("long_block", index, plan["max_seconds"])
    return {
        # of calls on inputs that are on the GPU, None on a CPU
        "device_s": [*(earlier.get("device_s") or []), *device] or None,
        # long enough for a GPU's energy counter, None where each block is
        "long_blocks": [*(earlier.get("long_blocks") or []), *([block] if block else [])] or None,
        "streams": on_streams(worker, index, plan, earlier, streams),
    }


def on_streams(
    worker: Child, index: int, plan: Plan, earlier: Shape, streams: Sequence[int]
) -> list[dict[str, Any]] | None:
    """Return blocks of calls on each number of `streams`, of both loads; None where there are none.

    Where an engine fails on several streams, such as for memory, `reason` says why, and its other
    measurements hold.
    """
    before = {one["streams"]: one for one in earlier.get("streams") or ()}
    found = []
    for count in streams:
        reason, blocks = None, None
        try:
            blocks = worker.ask("streams", index, count, plan["max_seconds"])
        except WorkFailed as error:
            worker.process.join(GRACE_SECONDS)
            if not worker.process.is_alive():
                raise
            reason = error.reason
        if blocks or reason:
            parts = before.get(count, {}), blocks or {}
            lists = {
                name: [value for part in parts for value in part.get(name) or ()]
                for name in ("calls", "seconds", "gpu")
            }
            reason = reason or parts[0].get("reason")
            found.append({"streams": count, "reason": reason, **lists})
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


def second_half(plan: Plan, first: Shape) -> Plan:
    """Return the target of both loads: the second load measures at least as many pairs."""
    if plan["calls"] is not None:
        return plan
    kept = 2 * len(undisturbed(first))
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
