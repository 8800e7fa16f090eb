"""Throughput of an engine on several streams of a GPU, from the blocks of a recorded shape."""

import math
from typing import Any

from tightrope.machine.interference import gpu_disturbance
from tightrope.statistics import trimmed_mean
from tightrope.summary.model_types import StreamRate, Streams

Facts = dict[str, Any]


def streams_entry(shape: Facts) -> Streams | None:
    """Return `streams` of a latency row, None where the shape was timed on no number of them."""
    rates = [rate(one, shape["batch"]) for one in shape.get("streams") or ()]
    if not rates:
        return None
    known = {
        one["streams"]: one["throughput_per_s"]
        for one in rates
        if one["throughput_per_s"] is not None
    }
    return {"rates": rates, "best": max(known, key=lambda count: known[count], default=None)}


def rate(measured: Facts, batch: int) -> StreamRate:
    """Return the samples per second on a number of streams, over the blocks that count.

    Those do not in which the GPU was slowed down or shared. The estimate and its interval are those
    of `trimmed_mean`; the interval is None with fewer than two blocks.
    """
    values = [
        batch * calls / seconds
        for calls, seconds, state in zip(
            measured["calls"], measured["seconds"], measured["gpu"], strict=True
        )
        if gpu_disturbance(state or {}) is None
    ]
    middle = trimmed_mean(values) if values else None
    bounded = middle is not None and math.isfinite(middle.low)
    reason = measured["reason"]
    if middle is None and reason is None:
        reason = "the GPU was slowed down or shared in each block"
    return {
        "streams": measured["streams"],
        "throughput_per_s": middle.value if middle else None,
        "low": middle.low if middle and bounded else None,
        "high": middle.high if middle and bounded else None,
        "blocks": len(values),
        "reason": reason,
    }
