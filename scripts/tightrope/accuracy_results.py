"""From the answers of one variant to `accuracy` of its result, in pairs with its baseline's."""

from collections import Counter
from typing import Any

from tightrope.host import numerics_fingerprint
from tightrope.records import AccuracyRecord
from tightrope.statistics import accuracy_verdict, mcnemar_p_value, paired_difference, share

Entry = dict[str, Any]


def accuracy_entry(
    record: AccuracyRecord, baseline: AccuracyRecord | None, budget: float
) -> Entry | None:
    """Accuracy, and its change against the baseline on the same examples.

    None where nothing was predicted. Without a baseline's predictions on the same split the
    change is None and the verdict `undecided`.
    """
    if not record.predictions or record.labels is None:
        return None
    right = hits(record)
    top1 = share(sum(right), len(right))
    entry = {
        "top1": top1.value,
        "low": top1.low,
        "high": top1.high,
        "samples": len(right),
        "verdict": "undecided",
        **dict.fromkeys(["delta", "delta_low", "delta_high", "p_value", "flips", "agreement"]),
    }
    if baseline is None or not comparable(record, baseline):
        return entry
    # a slow engine is judged on the first examples only
    pairs = list(zip(right, hits(baseline), strict=False))
    changes, count = Counter(pairs), len(pairs)
    gained, lost = changes[True, False], changes[False, True]
    change = paired_difference(gained, lost, count)
    if baseline.variant == record.variant:
        change = change._replace(low=0.0, high=0.0)
    both = zip(record.predictions, baseline.predictions, strict=False)
    flips = sum(ours != theirs for ours, theirs in both)
    return {
        **entry,
        "delta": change.value,
        "delta_low": change.low,
        "delta_high": change.high,
        "p_value": mcnemar_p_value(gained, lost),
        "flips": flips,
        "agreement": 1 - flips / count,
        "verdict": accuracy_verdict(change, budget),
    }


def hits(record: AccuracyRecord) -> list[bool]:
    """For each prediction whether it is the label."""
    return [
        ours == label for ours, label in zip(record.predictions, record.labels or (), strict=True)
    ]


def comparable(record: AccuracyRecord, baseline: AccuracyRecord) -> bool:
    """Whether both judged the same examples, on machines that compute alike."""
    places = {numerics_fingerprint(one.host) for one in (record, baseline)}
    same_examples = baseline.data_sha256 == record.data_sha256
    return bool(baseline.predictions) and same_examples and len(places) == 1
