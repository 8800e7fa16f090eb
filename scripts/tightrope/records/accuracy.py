"""Record of accuracy: every prediction on the evaluation split."""

from dataclasses import dataclass, field

from tightrope.records.record import Record


@dataclass(kw_only=True)
class AccuracyRecord(Record):
    """Every prediction on the evaluation split, in its order; for a slow engine the first ones.

    `margins` are the highest logit minus the second highest; `logits` are [examples, classes], to
    six digits. Without labels in the data, `labels` is None and nothing is predicted.
    `data_sha256` is that of the manifest of the split. `truncation` has the number of its `texts`,
    and how many of them were `truncated` at `max_sequence` tokens; None for images, and where
    nothing was predicted.
    """

    data_sha256: str | None = None
    truncation: dict[str, int] | None = None
    labels: list[int] | None = None
    predictions: list[int] = field(default_factory=list)
    margins: list[float] = field(default_factory=list)
    logits: list[list[float]] = field(default_factory=list)
