"""What the entries of all measurements say: whose record it is, and what disturbed it."""

import statistics
from collections import Counter
from typing import TypedDict

from tightrope.machine.host import host_key
from tightrope.machine.interference import MAX_FOREIGN_CORES, SLOWDOWNS, Counters, disturbance
from tightrope.records.kept import named
from tightrope.records.latency import Reference, TimedShape
from tightrope.records.record import Record
from tightrope.summary.result_types import Attempt

# share of a core that the idle engine of a pair may use during a block
IDLE_SHARE = 0.02
DRIFT = 0.10
CAUSES = {
    "waited": "their threads waited for a CPU that another program used",
    "preempted": "their threads were preempted by another program",
    "stolen": "the hypervisor took the processor",
    "throttled": "the GPU was throttled",
    "shared": "other processes on the GPU",
}
OF_THE_GPU = {"throttled", "shared"}


class Measured(TypedDict):
    """A variant of a model on a host, whether it could be measured, else the reason, and when."""

    model: str
    variant: str
    host: str
    status: Attempt
    reason: str | None
    measured: str


def measured_entry(record: Record) -> Measured:
    """Return what the entry of a record begins with."""
    return {
        "model": record.model,
        "variant": record.variant,
        "host": host_key(record.host),
        "status": record.status,
        "reason": record.reason,
        "measured": record.measured,
    }


def why_disturbed(shape: TimedShape, kept: int, fewest: int, busiest: dict[str, float]) -> str:
    """Explain why a shape with only `kept` undisturbed pairs of blocks has no latency."""
    return (
        f"only {kept} of {len(shape.pairs)} pairs of blocks were undisturbed, {fewest} are needed: "
        f"{causes(shape.pairs, shape.foreign_cores, busiest)}"
    )


def causes(pairs: list[Counters], windows: list[float | None], busiest: dict[str, float]) -> str:
    """Name what disturbed the pairs, the most frequent first, and the busiest programs."""
    counts = Counter(filter(None, (disturbance(pair, windows) for pair in pairs)))
    words = " and ".join(in_words(cause, pairs) for cause, _ in counts.most_common())
    return words + (named(busiest) if counts.keys() - OF_THE_GPU else "")


def in_words(cause: str, pairs: list[Counters]) -> str:
    """Describe a cause of disturbance; where the GPU was throttled, with the reasons."""
    if cause != "throttled":
        return CAUSES[cause]
    reasons = {reason for pair in pairs for reason in pair.throttled or ()}
    return f"{CAUSES[cause]} ({', '.join(sorted(reasons & SLOWDOWNS))})"


def why_noisy(shape: TimedShape, reference: Reference | None) -> list[str]:
    """Explain why the latencies of a shape are noisy; empty if they are not."""
    found = []
    known = [cores for cores in shape.foreign_cores if cores is not None]
    if known and (foreign := statistics.fmean(known)) > MAX_FOREIGN_CORES:
        found.append(f"other programs or the hypervisor used {foreign:.1f} cores of its processors")
    if shape.idle_share > IDLE_SHARE:
        found.append(f"the engine that was not timed used {100 * shape.idle_share:.0f} % of a core")
    return found + drift(reference)


def drift(reference: Reference | None) -> list[str]:
    """Report a change in time of the fixed workload between before and after the measurement."""
    if reference is None:
        return []
    both = (reference.before, reference.after)
    before, after = (statistics.median(one.rounds_s) for one in both)
    change = after / before - 1
    if abs(change) <= DRIFT:
        return []
    word = "slower" if change > 0 else "faster"
    return [f"the machine was {100 * abs(change):.0f} % {word} after the measurement than before"]
