"""Accuracy of a variant and its paired change against the baseline, for summary.json."""

from collections.abc import Sequence
from itertools import compress, count
from operator import ne
from typing import NamedTuple, TypedDict

from tightrope.records.accuracy import AccuracyRecord
from tightrope.records.paired_accuracy import comparable, compared
from tightrope.statistics import Interval, share
from tightrope.summary.logits import ReferenceLogits
from tightrope.summary.result_types import Accuracy, AccuracyChange, FlippedExample, TopOne

MOST = 200
LONGEST = 300
ELLIPSIS = "\N{HORIZONTAL ELLIPSIS}"


class Distance(TypedDict):
    """How far predictions and logits are from the baseline's; `kl` is in nats."""

    flips: int
    agreement: float
    logit_error: float | None
    kl: float


class Split(NamedTuple):
    """Evaluation split: file SHA-256, text or image name (or None) per example, class names."""

    sha256: str
    texts: Sequence[str | None]
    labels: Sequence[str] | None


def accuracy_entry(
    record: AccuracyRecord,
    baseline: AccuracyRecord | None,
    budget: float,
    split: Split,
    logits: ReferenceLogits | None = None,
) -> Accuracy | None:
    """Return the accuracy of `record` and its change against the baseline on the same examples.

    The examples are those of `split`; `logits` are the baseline's, which its variants share.
    Returns None without predictions or labels. Without comparable baseline predictions the change
    is None and the verdict `undecided`.
    """
    if not record.predictions or record.labels is None:
        return None
    right = record.right
    entry = top_one(right)
    if baseline is None or not comparable(record, baseline):
        return not_compared(entry)
    if baseline.variant == record.variant:
        return baseline_itself(entry)
    return {
        **entry,
        **compared(record, baseline, budget),
        **distance(record, baseline, logits or ReferenceLogits(baseline.logits)),
        "flipped": flipped(record, baseline, split),
    }


def top_one(right: Sequence[bool]) -> TopOne:
    """Return the share of right predictions."""
    top1 = share(sum(right), len(right))
    return {"top1": top1.value, "low": top1.low, "high": top1.high, "samples": len(right)}


def not_compared(entry: TopOne) -> Accuracy:
    """Return an accuracy without a change, which takes the baseline on the same examples."""
    return {
        **entry,
        "delta": None,
        "delta_low": None,
        "delta_high": None,
        "gained": None,
        "lost": None,
        "p_value": None,
        "detectable": None,
        "large_enough": None,
        "verdict": "undecided",
        "samples_needed": None,
        "flips": None,
        "agreement": None,
        "logit_error": None,
        "kl": None,
        "flipped": None,
    }


def baseline_itself(entry: TopOne) -> Accuracy:
    """Return the accuracy of the baseline, which is unchanged by definition."""
    return {
        **entry,
        "delta": 0,
        "delta_low": 0,
        "delta_high": 0,
        "gained": 0,
        "lost": 0,
        "p_value": 1.0,
        "detectable": 0,
        "large_enough": True,
        "verdict": "kept",
        "samples_needed": None,
        "flips": 0,
        "agreement": 1.0,
        "logit_error": 0,
        "kl": 0,
        "flipped": [],
    }


def change_of(accuracy: AccuracyChange) -> Interval | None:
    """Return the change of accuracy with its interval, None if it was not compared."""
    delta, low, high = accuracy["delta"], accuracy["delta_low"], accuracy["delta_high"]
    return None if delta is None or low is None or high is None else Interval(delta, low, high)


def distance(record: AccuracyRecord, baseline: AccuracyRecord, logits: ReferenceLogits) -> Distance:
    """Return how far predictions and logits differ from the baseline's, independent of the labels.

    `logit_error` is the RMS difference of the logits over the RMS of the baseline's logits about
    their mean in each example, `kl` the mean KL(baseline || variant) of the softmax, in nats.
    """
    count = min(len(record.predictions), len(baseline.predictions))
    flips = sum(map(ne, record.predictions, baseline.predictions))
    error, divergence = logits.distance(record.logits, count)
    return {
        "flips": flips,
        "agreement": 1 - flips / count,
        "logit_error": error,
        "kl": divergence,
    }


def flipped(record: AccuracyRecord, baseline: AccuracyRecord, split: Split) -> list[FlippedExample]:
    """Return examples whose prediction differs from the baseline's, highest baseline margin first.

    At most MOST. `text` is cut at LONGEST characters; it is None if the source has no text or the
    record was made on another split. Classes are names if the data have any, else indices.
    """
    found = list(compress(count(), map(ne, record.predictions, baseline.predictions)))
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
