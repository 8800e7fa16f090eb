"""Energy of a call, from the joules of the blocks of a recorded shape."""

from collections.abc import Sequence
from typing import Any

from tightrope.machine.interference import gpu_disturbance

Facts = dict[str, Any]


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
