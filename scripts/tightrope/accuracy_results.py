"""From the answers of one variant to `accuracy` of its result, in pairs with its baseline's."""

from collections import Counter
from typing import Any

from tightrope.flips import Split, flipped
from tightrope.host import numerics_fingerprint
from tightrope.records import AccuracyRecord
from tightrope.statistics import (
    accuracy_verdict,
    detectable_drop,
    mcnemar_p_value,
    mean_divergence,
    paired_difference,
    relative_error,
    share,
)

Entry = dict[str, Any]
# what there is only beside a baseline's answers to the same examples
PAIRED = (
    *("delta", "delta_low", "delta_high", "gained", "lost", "p_value", "detectable"),
    *("large_enough", "flips", "agreement", "logit_error", "kl", "flipped"),
)
# what of these is not 0 for the baseline itself
UNCHANGED = {
    "p_value": 1.0,
    "large_enough": True,
    "agreement": 1.0,
    "flipped": [],
    "verdict": "kept",
}


def accuracy_entry(
    record: AccuracyRecord, baseline: AccuracyRecord | None, budget: float, split: Split
) -> Entry | None:
    """Accuracy, and its change against the baseline on the same examples, those of `split`.

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
        **dict.fromkeys(PAIRED),
    }
    if baseline is None or not comparable(record, baseline):
        return entry
    if baseline.variant == record.variant:
        return {**entry, **dict.fromkeys(PAIRED, 0), **UNCHANGED}
    return {
        **entry,
        **change(right, hits(baseline), budget),
        **distance(record, baseline),
        "flipped": flipped(record, baseline, split),
    }


def change(right: list[bool], baseline_right: list[bool], budget: float) -> Entry:
    """How the accuracy changed, and which change these examples could have shown."""
    # a slow engine is judged on the first examples only
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


def distance(record: AccuracyRecord, baseline: AccuracyRecord) -> Entry:
    """How far the answers lie from the baseline's, whatever the labels say.

    `logit_error` is the root mean square of the difference of the logits over that of the
    baseline's logits about their mean in each example, `kl` the mean of KL(baseline || variant)
    of the softmax, in nats.
    """
    count = min(len(record.predictions), len(baseline.predictions))
    both = zip(record.predictions, baseline.predictions, strict=False)
    flips = sum(ours != theirs for ours, theirs in both)
    ours, theirs = record.logits[:count], baseline.logits[:count]
    return {
        "flips": flips,
        "agreement": 1 - flips / count,
        "logit_error": relative_error(ours, theirs),
        "kl": mean_divergence(theirs, ours),
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
