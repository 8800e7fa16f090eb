"""Change of accuracy between two records on the same examples."""

from collections import Counter
from typing import TypedDict

from tightrope.machine.host import numerics_fingerprint
from tightrope.records.accuracy import AccuracyRecord
from tightrope.statistics import (
    AccuracyVerdict,
    accuracy_verdict,
    detectable_drop,
    mcnemar_p_value,
    paired_difference,
)


class Change(TypedDict):
    """Change of accuracy on the same examples, as shares of them, with its tests."""

    delta: float
    delta_low: float
    delta_high: float
    gained: int
    lost: int
    p_value: float
    detectable: float
    large_enough: bool
    verdict: AccuracyVerdict


def change(right: list[bool], baseline_right: list[bool], budget: float) -> Change:
    """Return the change of accuracy with its tests, and the drop that these examples can detect."""
    # a slow engine is evaluated on the first examples only
    pairs = list(zip(right, baseline_right, strict=False))
    changes, count = Counter(pairs), len(pairs)
    gained, lost = changes[True, False], changes[False, True]
    difference = paired_difference(gained, lost, count)
    detectable = detectable_drop(gained + lost, count)
    return {
        "delta": difference.value,
        "delta_low": difference.low,
        "delta_high": difference.high,
        "gained": gained,
        "lost": lost,
        "p_value": mcnemar_p_value(gained, lost),
        "detectable": detectable,
        "large_enough": detectable <= budget,
        "verdict": accuracy_verdict(difference, budget),
    }


def hits(record: AccuracyRecord) -> list[bool]:
    """Return for each prediction whether it equals the label."""
    return [
        ours == label for ours, label in zip(record.predictions, record.labels or (), strict=True)
    ]


def comparable(record: AccuracyRecord, baseline: AccuracyRecord) -> bool:
    """Return whether both used the same examples, on machines with the same numerics."""
    places = {numerics_fingerprint(one.host) for one in (record, baseline)}
    same_examples = baseline.data_sha256 == record.data_sha256
    return bool(baseline.predictions) and same_examples and len(places) == 1
