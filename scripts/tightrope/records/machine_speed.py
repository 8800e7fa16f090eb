"""How much the machine changed its speed in a run, and what that leaves open of a speed-up."""

import math
import statistics
from collections.abc import Iterable

from tightrope.machine.host import fingerprint
from tightrope.machine.interference import undisturbed
from tightrope.records.latency import LatencyRecord

# how much of a change of the machine's speed the ratio of two engines follows:
# docs/results/decision.md
FOLLOWED = 0.3
# fewer say nothing
FEWEST_JOBS = 3
# of two engines the one that was loaded first is slower while it lives, which two loads in turned
# order average out and one does not: standard deviation of the log ratio, same document
ORDER = 0.012

Group = tuple[str, str, str]


class MachineSpeed:
    """How the time of one engine differed between the jobs of a run that measured it.

    Each job times its variant beside the same baseline, and so this one again: in other minutes, in
    which neighbours of a virtual machine, or its clock, may let it run at another speed. Engines do
    not all follow alike (one waits for memory, another computes), so that the ratio of two engines
    differs from minute to minute, by more than the pairs of one of them show.
    """

    def __init__(self, records: Iterable[LatencyRecord]) -> None:
        self.logs: dict[tuple[Group, int], list[float]] = {}
        for record in records:
            for place, shape in enumerate(record.shapes):
                blocks = shape["baseline_blocks_s"] or shape["blocks_s"]
                kept = [statistics.median(blocks[index]) for index in undisturbed(shape)]
                if kept:
                    logs = self.logs.setdefault((group_of(record), place), [])
                    logs.append(math.log(statistics.median(kept)))

    def spread(self, record: LatencyRecord, place: int) -> float:
        """Standard deviation of the log of the baseline's time from job to job at that shape.

        0 where fewer than `FEWEST_JOBS` measured it.
        """
        logs = self.logs.get((group_of(record), place), [])
        return statistics.stdev(logs) if len(logs) >= FEWEST_JOBS else 0.0


def unsteadiness(spread: float, loads: int) -> float:
    """Standard deviation of the log of a speed-up beyond what its pairs of blocks show.

    On a machine of that `spread`, each engine having been loaded so many times.
    """
    return math.hypot(FOLLOWED * spread, ORDER if loads == 1 else 0.0)


def group_of(record: LatencyRecord) -> Group:
    """Of which jobs the times may be compared: one model, host and baseline."""
    return record.model, fingerprint(record.host), record.baseline or record.variant
