"""What disturbed a measurement: judged from what was counted, never from the times themselves.

A block is not thrown out because it was slow, for that would make every engine look faster: it is
marked because something else had the processor meanwhile.
"""

import statistics
from typing import Any

# the share of a block's seconds that its threads may wait, or that may be stolen, unmarked
WAITED = 0.05
# involuntary context switches a second and thread, where waiting is not counted
PREEMPTED = 100
# the share of a block in which the engine that is not timed may use a core
IDLE_SHARE = 0.02
OTHER_CORES = 0.5
DRIFT = 0.10

Facts = dict[str, Any]


def hit(block: Facts, threads: int) -> str | None:
    """What hit a block of an engine with so many threads, in words; None where nothing did.

    `block`: `seconds`, `waited_s` (None where not counted), `preempted` and `stolen_s`, as
    `foreign_load.Counters` has them, of the timed calls alone.
    """
    seconds = block["seconds"]
    if block["stolen_s"] > WAITED * seconds:
        return f"the hypervisor took {block['stolen_s'] * 1e3:.0f} ms"
    if block["waited_s"] is not None:
        if block["waited_s"] > WAITED * seconds:
            return f"waited {block['waited_s'] * 1e3:.1f} ms for a processor"
    elif block["preempted"] > 1 + PREEMPTED * seconds * threads:
        return f"lost its processor {block['preempted']} times"
    return None


def quiet_pairs(shape: Facts, fewest: int) -> list[int]:
    """Indices of the pairs of blocks that count: those that nothing hit, where they are enough.

    With fewer than `fewest` of them all pairs count, and `reasons` says so.
    """
    quiet = [index for index, reason in enumerate(shape["hits"]) if reason is None]
    return quiet if len(quiet) >= fewest else list(range(len(shape["hits"])))


def reasons(shape: Facts, reference: Facts | None, fewest: int) -> list[str]:
    """Why the figures of a shape are noisy, in words; empty where they are not."""
    found = []
    marked = sum(reason is not None for reason in shape["hits"])
    if len(shape["hits"]) - marked < fewest and marked:
        found.append(
            f"{marked} of {len(shape['hits'])} pairs of blocks were hit by other load, "
            "and too few were left without them"
        )
    if shape["other_cores"] > OTHER_CORES:
        found.append(f"other programs kept {shape['other_cores']:.1f} cores busy")
    if shape["idle_share"] > IDLE_SHARE:
        found.append(
            f"the engine that was not timed used {100 * shape['idle_share']:.0f} % of a core"
        )
    return found + drift(reference)


def drift(reference: Facts | None) -> list[str]:
    """Whether the fixed workload took another time after the measurement than before it."""
    if reference is None:
        return []
    before, after = (statistics.median(reference[when]["rounds_s"]) for when in ("before", "after"))
    change = after / before - 1
    if abs(change) <= DRIFT:
        return []
    word = "slower" if change > 0 else "faster"
    return [f"the machine was {100 * abs(change):.0f} % {word} after the measurement than before"]
