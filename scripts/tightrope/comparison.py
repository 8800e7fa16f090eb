"""Blocks of an engine and of its baseline in turn, until the speed-up is known well enough."""

import random
import time
from collections.abc import Callable
from typing import Any

from tightrope.foreign_load import OtherPrograms
from tightrope.noise import hit
from tightrope.statistics import speedup
from tightrope.supervise import Child

# pairs between two looks at the interval: each look takes a bootstrap, and a look after every pair
# would stop at the first interval that is narrow by chance
LOOK = 10
# beyond its time limit a worker may finish the call that it is in
GRACE_SECONDS = 10.0

Plan = dict[str, Any]
Shape = dict[str, Any]
# what each load of the engines says for itself: the higher counts
FACTS = ("threads_busy", "cores_used", "other_cores", "idle_share")


def compare(
    workers: list[Child], index: int, plan: Plan, threads: int, earlier: Shape | None = None
) -> Shape:
    """Time inputs `index` on the first worker and, where there are two, on the second.

    `plan` is `latency` of the configuration. Warm-up comes first and is not kept. Then pairs of
    blocks, which of the two goes first drawn at random from a fixed seed; a pair that other load
    has hit is marked, and does not count while time is left to measure another. Gives a shape of
    a LatencyRecord, without its size, and goes on from the `earlier` one, which other workers with
    the same engines have measured. Raises WorkFailed when one of the engines needs longer than
    `max_seconds` for its own calls.
    """
    earlier = earlier or {}
    began, others = time.monotonic() - earlier.get("seconds", 0.0), OtherPrograms()
    names = ("blocks_s", "baseline_blocks_s")[: len(workers)]
    blocks: list[list[list[float]]] = [list(earlier.get(name, ())) for name in names]
    hits: list[str | None] = list(earlier.get("hits", ()))
    order = random.Random(f"{index}, {len(hits)}")
    clocks = [
        Stopwatch(worker, plan["max_seconds"], own)
        for worker, own in zip(workers, blocks, strict=True)
    ]
    warmups = [warm_up(clock, index, plan) for clock in clocks]
    seconds, counts = block_sizes(plan)
    used, stop = [], None
    while stop is None:
        calls = counts[len(hits) % len(counts)]
        pair: list[dict[str, Any]] = [{} for _ in workers]
        for which in order.sample(range(len(workers)), len(workers)):
            pair[which] = clocks[which].block(index, seconds, calls)
        for own, block in zip(blocks, pair, strict=True):
            own.append(block["samples_s"])
        used += pair
        hits.append(next((why for block in pair if (why := hit(block, threads))), None))
        stop = why_stop(blocks, hits, plan, time.monotonic() - began)
    facts = [worker.ask("threads") for worker in workers]
    shape = {
        "warmups": [*earlier.get("warmups", ()), warmups[0]],
        "baseline_blocks_s": None,
        **dict(zip(names, blocks, strict=True)),
        "hits": hits,
        "stop": stop,
        "seconds": time.monotonic() - began,
        "threads_busy": facts[0]["busy"],
        "cores_used": facts[0]["cores"],
        "other_cores": others.cores(),
        "idle_share": idle_share(used),
    }
    return shape | {name: max(shape[name], earlier.get(name, 0)) for name in FACTS}


class Stopwatch:
    """A worker, and how much of its time for one shape its engine has used."""

    def __init__(self, worker: Child, max_seconds: float, blocks: list[list[float]]) -> None:
        self.worker = worker
        self.max_seconds = max_seconds
        self.seconds = sum(sum(block) for block in blocks)
        self.calls = sum(len(block) for block in blocks)

    def block(self, index: int, seconds: float, calls: int) -> dict[str, Any]:
        """A block of the worker, see `TimedEngine.block`; WorkFailed beyond the limit."""
        return self.within(
            lambda left: ("block", index, seconds, calls, left),
            lambda block: len(block["samples_s"]),
        )

    def within(
        self,
        request: Callable[[float], tuple[Any, ...]],
        count: Callable[[dict[str, Any]], int],
    ) -> dict[str, Any]:
        """The answer to `request(seconds left)`, in which `count` calls were made."""
        began, left = time.monotonic(), self.max_seconds - self.seconds
        answer = self.worker.ask(*request(left), seconds=left + GRACE_SECONDS)
        self.seconds += time.monotonic() - began
        self.calls += count(answer)
        if self.seconds > self.max_seconds:
            reason = f"too slow ({self.calls} calls in {self.seconds:.0f} s)"
            raise self.worker.failed(reason, transient=False)
        return answer


def warm_up(clock: Stopwatch, index: int, plan: Plan) -> dict[str, Any]:
    """Warm-up of one worker, see `TimedEngine.warm_up`; a window is as long as a usual block."""
    calls, window = plan["warmup_calls"], plan["min_seconds"] / plan["pairs"]

    def request(left: float) -> tuple[Any, ...]:
        seconds = left if calls is not None else min(plan["warmup_seconds"], left)
        return "warm_up", index, calls, seconds, window

    return clock.within(request, lambda answer: answer["calls"])


def block_sizes(plan: Plan) -> tuple[float, list[int]]:
    """Least seconds of a block, and least calls of each, over and over.

    With a fixed number of calls a block has no least time, and the calls of all blocks are
    just as many.
    """
    if plan["calls"] is None:
        return plan["min_seconds"] / plan["pairs"], [-(-plan["min_calls"] // plan["pairs"])]
    pairs = min(plan["pairs"], plan["calls"])
    each, more = divmod(plan["calls"], pairs)
    return 0.0, [each + 1] * more + [each] * (pairs - more)


def why_stop(
    blocks: list[list[list[float]]], hits: list[str | None], plan: Plan, seconds: float
) -> str | None:
    """Why no other pair is measured: `width`, `minimum`, `time limit` or `calls`, else None.

    `blocks` are those of each engine. `minimum`: a baseline measured alone has no interval, and
    stops at the minima.
    """
    if plan["calls"] is not None:
        return "calls" if len(hits) == len(block_sizes(plan)[1]) else None
    if len(hits) < plan["pairs"]:
        return None
    quiet = [index for index, reason in enumerate(hits) if reason is None]
    more = len(quiet) - plan["pairs"]
    if more >= 0:
        if len(blocks) == 1:
            return "minimum"
        own, theirs = ([one[index] for index in quiet] for one in blocks)
        if more % LOOK == 0 and width(own, theirs) <= plan["width"]:
            return "width"
    return "time limit" if seconds >= plan["comparison_seconds"] else None


def width(own: list[list[float]], theirs: list[list[float]]) -> float:
    """The width of the speed-up's interval, relative to the speed-up."""
    interval = speedup(own, theirs)
    return (interval.high - interval.low) / interval.value


def idle_share(blocks: list[dict[str, Any]]) -> float:
    """CPU seconds that workers used while it was not their turn, over seconds of all blocks."""
    return sum(block["idle_s"] for block in blocks) / sum(block["seconds"] for block in blocks)
