"""From the answers of one variant to `accuracy` of its result, in pairs with its baseline's."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from tightrope.records.accuracy import AccuracyRecord
from tightrope.records.paired_accuracy import change, comparable, hits
from tightrope.statistics import mean_divergence, relative_error, share

MOST = 200
LONGEST = 300
ELLIPSIS = "\N{HORIZONTAL ELLIPSIS}"

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


class Split(NamedTuple):
    """An evaluation split: its file's sha256, for each example a text or the name of its image (or
    None), and class names."""

    sha256: str
    texts: Sequence[str | None]
    labels: Sequence[str] | None


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


def flipped(record: AccuracyRecord, baseline: AccuracyRecord, split: Split) -> list[dict[str, Any]]:
    """Examples with another prediction than the baseline's, the one it was surest of first.

    At most MOST. `text` is cut at LONGEST characters, and None where the source has none or the
    records judged another split than this one. Classes are names where the data have any.
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
    """`text` in LONGEST characters, the last of them an ellipsis where it was cut."""
    if text is None or len(text) <= LONGEST:
        return text
    return text[: LONGEST - 1].rstrip() + ELLIPSIS


def class_name(index: int, labels: Sequence[str] | None) -> str | int:
    """The name of that class in the data; its number where they have none for it."""
    return labels[index] if labels is not None and index < len(labels) else index
