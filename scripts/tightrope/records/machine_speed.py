"""Changes of machine speed during a run, and the uncertainty that they add to a speed-up."""

import math
import statistics
from collections.abc import Iterable

from tightrope.machine.host import host_key
from tightrope.records.latency import LatencyRecord

# share of a change of machine speed that shows in the ratio of two engines:
# docs/results/decision.md
DRIFT_SHARE = 0.3
# fewest jobs for an estimate of the spread
FEWEST_JOBS = 3
# the engine that is loaded first stays slower than the second; two loads in opposite order average
# this out, one load does not: standard deviation of the log ratio, same document
LOAD_ORDER_STD = 0.012

Group = tuple[str, str, str]


class MachineSpeed:
    """Changes in the time of the baseline between the jobs of a run.

    Each job times its variant paired with the same baseline, which is thus measured repeatedly. At
    other times the machine may run at another speed, because of neighbours of a virtual machine or
    its clock. Engines react differently (memory-bound or compute-bound), so the ratio of two
    engines varies from minute to minute by more than the pairs of a single job show.
    """

    def __init__(self, records: Iterable[LatencyRecord]) -> None:
        logs: dict[tuple[Group, int], list[float]] = {}
        for record in records:
            group = group_of(record)
            for place, shape in enumerate(record.shapes):
                blocks = shape["baseline_blocks_s"] or shape["blocks_s"]
                kept = [statistics.median(blocks[at]) for at in record.undisturbed_pairs[place]]
                if kept:
                    logs.setdefault((group, place), []).append(math.log(statistics.median(kept)))
        # once per group, not for each of its records
        self.spreads = {
            key: statistics.stdev(known) for key, known in logs.items() if len(known) >= FEWEST_JOBS
        }

    def spread(self, record: LatencyRecord, place: int) -> float:
        """Return the standard deviation over jobs of the log of the baseline's time at a shape.

        0 where fewer than `FEWEST_JOBS` measured it.
        """
        return self.spreads.get((group_of(record), place), 0.0)


def drift_std(spread: float, loads: int) -> float:
    """Return the standard deviation of the log of a speed-up that its pairs of blocks do not show.

    `spread` is that of the machine, `loads` how many times each engine was loaded.
    """
    return math.hypot(DRIFT_SHARE * spread, LOAD_ORDER_STD if loads == 1 else 0.0)


def group_of(record: LatencyRecord) -> Group:
    """Return the key of jobs with comparable times: model, host and baseline."""
    return record.model, host_key(record.host), record.baseline or record.variant
