"""Accuracy of a variant and its paired change against the baseline, for summary.json."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from tightrope.records.accuracy import AccuracyRecord
from tightrope.records.paired_accuracy import change, comparable, hits
from tightrope.statistics import mean_divergence, relative_error, share

MOST = 200
LONGEST = 300
ELLIPSIS = "\N{HORIZONTAL ELLIPSIS}"

Entry = dict[str, Any]
# fields that need the baseline's predictions on the same examples
PAIRED = (
    *("delta", "delta_low", "delta_high", "gained", "lost", "p_value", "detectable"),
    *("large_enough", "flips", "agreement", "logit_error", "kl", "flipped"),
)
# fields of the baseline itself that are not 0
UNCHANGED = {
    "p_value": 1.0,
    "large_enough": True,
    "agreement": 1.0,
    "flipped": [],
    "verdict": "kept",
}


class Split(NamedTuple):
    """Evaluation split: file SHA-256, text or image name (or None) per example, class names."""

    sha256: str
    texts: Sequence[str | None]
    labels: Sequence[str] | None


def accuracy_entry(
    record: AccuracyRecord, baseline: AccuracyRecord | None, budget: float, split: Split
) -> Entry | None:
    """Return the accuracy of `record` and its change against the baseline on the same examples.

    The examples are those of `split`. Returns None without predictions or labels. Without
    comparable baseline predictions the change is None and the verdict `undecided`.
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


def distance(record: AccuracyRecord, baseline: AccuracyRecord) -> Entry:
    """Return how far predictions and logits differ from the baseline's, independent of the labels.

    `logit_error` is the RMS difference of the logits over the RMS of the baseline's logits about
    their mean in each example, `kl` the mean KL(baseline || variant) of the softmax, in nats.
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


def flipped(record: AccuracyRecord, baseline: AccuracyRecord, split: Split) -> list[dict[str, Any]]:
    """Return examples whose prediction differs from the baseline's, highest baseline margin first.

    At most MOST. `text` is cut at LONGEST characters; it is None if the source has no text or the
    record was made on another split. Classes are names if the data have any, else indices.
    """
    pairs = zip(record.predictions, baseline.predictions, strict=False)
    found = [index for index, (ours, theirs) in enumerate(pairs) if ours != theirs]
    found.sort(key=lambda index: (-baseline.margins[index], index))
    labels = record.labels or ()
    same = split.sha256 == record.data_sha256
    return [
        {
            "index": index,
            "text": shortened(split.texts[index]) if same else None,
            "label": class_name(labels[index], split.labels),
            "baseline": class_name(baseline.predictions[index], split.labels),
            "prediction": class_name(record.predictions[index], split.labels),
            "baseline_margin": baseline.margins[index],
            "margin": record.margins[index],
        }
        for index in found[:MOST]
    ]


def shortened(text: str | None) -> str | None:
    """Cut `text` to LONGEST characters, with an ellipsis at the end if it was longer."""
    if text is None or len(text) <= LONGEST:
        return text
    return text[: LONGEST - 1].rstrip() + ELLIPSIS


def class_name(index: int, labels: Sequence[str] | None) -> str | int:
    """Return the class name, or the class index if the data have no name for it."""
    return labels[index] if labels is not None and index < len(labels) else index
