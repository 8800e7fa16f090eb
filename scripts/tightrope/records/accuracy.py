"""The record of an accuracy: every prediction on the evaluation split."""

from dataclasses import dataclass, field

from tightrope.records.record import Record


@dataclass(kw_only=True)
class AccuracyRecord(Record):
    """Every prediction on the evaluation split, in its order; of a slow engine the first ones.

    `margins` are the highest logit less the second highest; `logits` are [examples, classes], to
    six digits. `labels` is None, and nothing was predicted, when the data has no labels.
    `data_sha256` is the split's.
    """

    data_sha256: str | None = None
    labels: list[int] | None = None
    predictions: list[int] = field(default_factory=list)
    margins: list[float] = field(default_factory=list)
    logits: list[list[float]] = field(default_factory=list)
