"""Compare two engines in two halves, with new processes for the second half.

Two processes of the same engine differ by several tenths of a percent throughout their lifetime:
the process loaded first was 0.5 to 0.9 % slower (docs/results/2026-11-21-measurement.md). So each
half has new processes, loaded in the opposite order. `loads: 1` saves that time where a difference
of one percent does not matter.
"""

import math
import time
from collections.abc import Sequence
from contextlib import ExitStack
from typing import Any

from tightrope.errors import WorkFailed
from tightrope.jobs.child import Child, Limits
from tightrope.jobs.progress import ProgressBar
from tightrope.machine.interference import undisturbed
from tightrope.machine.quiet import QuietMachine
from tightrope.measure.blocks import Plan, block_sizes
from tightrope.measure.paired_blocks import Shape, compare
from tightrope.measure.timed_engine import TimedEngine

# time in which a worker that was killed ends
GRACE_SECONDS = 1.0


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
    with ProgressBar("timing", plan["loads"] * len(shapes)) as bar:
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
                    part = part_of(plan, earlier)
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
    """Return what is measured of the candidate alone, after the blocks of a shape."""
    return {
        "device_s": device_seconds(worker, index, earlier),
        "long_blocks": long_blocks(worker, index, plan, earlier),
        "streams": on_streams(worker, index, plan, earlier, streams),
    }


def device_seconds(worker: Child, index: int, earlier: Shape) -> list[float] | None:
    """Return seconds of calls on inputs that are on the GPU, of both loads; None on a CPU."""
    return [*(earlier.get("device_s") or []), *(worker.ask("device", index) or [])] or None


def long_blocks(
    worker: Child, index: int, plan: Plan, earlier: Shape
) -> list[dict[str, Any]] | None:
    """Return blocks that are long enough for a GPU's energy counter, of both loads; else None."""
    block = worker.ask("long_block", index, plan["max_seconds"])
    return [*(earlier.get("long_blocks") or []), *([block] if block else [])] or None


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
            found.append(joined(count, before.get(count, {}), blocks or {}, reason))
    return found or None


def joined(count: int, earlier: Shape, blocks: Shape, reason: str | None) -> dict[str, Any]:
    """Return the blocks on so many streams of an earlier load and of this one."""
    lists = {
        name: [*(earlier.get(name) or []), *(blocks.get(name) or [])]
        for name in ("calls", "seconds", "gpu")
    }
    reason = reason or earlier.get("reason")
    return {"streams": count, "reason": reason, **lists}


def part_of(plan: Plan, earlier: Shape) -> Plan:
    """Return the target for the end of this load; `earlier` is empty for the first load."""
    if plan["loads"] == 1:
        return plan
    return second_half(plan, earlier) if earlier else first_half(plan)


def first_half(plan: Plan) -> Plan:
    """Return the target of the first load: half of all minima, with blocks of unchanged length.

    The interval of half of the pairs may be wider by the square root of two.
    """
    half = {
        "width": math.sqrt(2) * plan["width"],
        "comparison_seconds": plan["comparison_seconds"] / 2,
    }
    if plan["calls"] is None:
        return scaled(plan, math.ceil(plan["pairs"] / 2)) | half
    sizes = block_sizes(plan)[1]
    first = sizes[: math.ceil(len(sizes) / 2)]
    return plan | {"pairs": len(first), "calls": sum(first)}


def second_half(plan: Plan, first: Shape) -> Plan:
    """Return the target of both loads: the second load measures at least as many pairs."""
    if plan["calls"] is not None:
        return plan
    return scaled(plan, max(plan["pairs"], 2 * len(undisturbed(first))))


def scaled(plan: Plan, pairs: int) -> Plan:
    """Return the plan with another minimum number of pairs, and blocks of unchanged length."""
    share = pairs / plan["pairs"]
    return plan | {
        "pairs": pairs,
        "min_seconds": share * plan["min_seconds"],
        "min_calls": math.ceil(share * plan["min_calls"]),
    }
