"""Accuracy of a variant, its paired change against the baseline, and what limits both."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import compress, count
from operator import ne
from typing import Any, NamedTuple

import numpy as np
from msgspec.structs import asdict

from tightrope.records.accuracy import AccuracyRecord, Logits, comparable, compared
from tightrope.statistics import share
from tightrope.summary.result_types import (
    Accuracy,
    FlippedExample,
    Model,
    Result,
    TopOne,
    Truncation,
)

Array = np.ndarray[Any, np.dtype[np.float64]]
# splits, and the settings at whose number of tokens their texts are cut
KEYS = {"evaluation": "max_sequence", "calibration": "max_sequence", "train": "train.sequence"}
# of the baseline, by definition
UNCHANGED: dict[str, Any] = {
    **dict.fromkeys(("delta", "delta_low", "delta_high", "gained", "lost", "detectable"), 0),
    **{"p_value": 1.0, "large_enough": True, "verdict": "kept"},
    **{"flips": 0, "agreement": 1.0, "logit_error": 0, "kl": 0, "flipped": []},
}
MOST = 200
LONGEST = 300
ELLIPSIS = "\N{HORIZONTAL ELLIPSIS}"


class LogitDistance(NamedTuple):
    """`error` as of `relative_error`, `divergence` as of `mean_divergence`, in nats."""

    error: float | None
    divergence: float


class ReferenceLogits:
    """The logits of a baseline, [examples, classes], with what each comparison needs of them.

    Arrays are float64 [classes, examples]: classes are few, and NumPy is fast along long axes. The
    numbers are those of `logit_distance` but for rounding: NumPy computes whole arrays, and its
    last bits may differ from one kind of processor to another.
    """

    def __init__(self, logits: Logits) -> None:
        self.scales: dict[int, float | None] = {}
        self.array = by_class(logits)
        below = self.array - self.array.max(axis=0, initial=-np.inf)
        # exactly 0 where all are equal; a baseline that has failed has no classes
        self.centred = below - below.sum(axis=0) / max(1, len(below))
        self.logarithms = log_softmax(self.array)
        self.shares = np.exp(self.logarithms)

    def distance(self, logits: Logits, count: int) -> LogitDistance:
        """Return the distance of the first `count` of these logits of a variant.

        Raises ValueError where they are of other classes than the baseline's.
        """
        own, theirs = by_class(logits[:count]), self.array[:, :count]
        if own.shape != theirs.shape:
            raise ValueError(f"logits of shape {own.shape[::-1]}, not {theirs.shape[::-1]}")
        scale = self.scale(count)
        terms = self.shares[:, :count] * (self.logarithms[:, :count] - log_softmax(own))
        relative = None if scale is None else root_mean_square(own - theirs) / scale
        return LogitDistance(relative, max(0.0, float(terms.sum(axis=0).mean())))

    def scale(self, count: int) -> float | None:
        """Return the root mean square of the first `count` rows about their means, None for 0."""
        if count not in self.scales:
            self.scales[count] = root_mean_square(self.centred[:, :count]) or None
        return self.scales[count]


def by_class(logits: Logits) -> Array:
    """Return logits [examples, classes] as float64 [classes, examples]."""
    return np.ascontiguousarray(logits.T, np.float64)


def log_softmax(logits: Array) -> Array:
    """Return `logit_distance.log_softmax` of each column."""
    highest = logits.max(axis=0, initial=-np.inf)
    below = logits - highest
    found: Array = below - np.log(np.exp(below).sum(axis=0))
    return found


def root_mean_square(values: Array) -> float:
    """Return the root mean square of all values."""
    return float(np.sqrt(np.square(values).mean()))


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
    right = asdict(top_one(record.right))
    if baseline is None or not comparable(record, baseline):
        return Accuracy(**right, verdict="undecided")
    if baseline.variant == record.variant:
        return Accuracy(**right, **UNCHANGED)
    count = min(len(record.predictions), len(baseline.predictions))
    flips = sum(map(ne, record.predictions, baseline.predictions))
    reference = logits or ReferenceLogits(baseline.logits)
    error, divergence = reference.distance(record.logits, count)
    return Accuracy(
        **right,
        **asdict(compared(record, baseline, budget)),
        flips=flips,
        agreement=1 - flips / count,
        logit_error=error,
        kl=divergence,
        flipped=flipped(record, baseline, split),
    )


def top_one(right: Sequence[bool]) -> TopOne:
    """Return the share of right predictions."""
    return TopOne(*share(sum(right), len(right)), samples=len(right))


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
        FlippedExample(
            index=index,
            text=shortened(split.texts[index]) if same else None,
            label=class_name(labels[index], split.labels),
            baseline=class_name(baseline.predictions[index], split.labels),
            prediction=class_name(record.predictions[index], split.labels),
            baseline_margin=baseline.margins[index],
            margin=record.margins[index],
        )
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


def chance_of(model: str, judged: Mapping[tuple[str, str], AccuracyRecord]) -> float | None:
    """Return the share of the most frequent label among a model's evaluation examples.

    It is the accuracy of always answering this label, and no less than that of guessing. None
    without labels.
    """
    found = [record.labels or () for (name, _), record in judged.items() if name == model]
    labels = max(found, key=len, default=())
    return max(Counter(labels).values()) / len(labels) if labels else None


def poor_baseline(model: Model, results: Iterable[Result]) -> str | None:
    """Return a remark on the first baseline of a model whose accuracy may be that of chance.

    `results` are those of the model.
    """
    names = model.baselines.values()
    for result in results:
        found, chance = result.accuracy, model.chance
        if result.variant in names and found and chance is not None and found.low <= chance:
            shares = [f"{100 * share:.1f}" for share in (found.top1, found.low, found.high)]
            return (
                f"the baseline itself is poor: its accuracy is {shares[0]} % ({shares[1]} to "
                f"{shares[2]}), and always giving the most frequent label has {100 * chance:.1f} "
                "%; check the labels and their order, or train the model longer"
            )
    return None


def truncation_words(splits: Mapping[str, Truncation]) -> str | None:
    """Return which texts were cut, per split; None if none were."""
    words = []
    for split, key in KEYS.items():
        found = splits.get(split)
        if found and found.truncated:
            texts = "text was" if found.texts == 1 else "texts were"
            words.append(
                f"{found.truncated:,} of {found.texts:,} {split} {texts} cut at "
                f"{key} = {found.max_sequence} tokens"
            )
    return "; ".join(words) or None
