"""The examples to which a variant gives another answer than its baseline, told for a reader."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from tightrope.records.record import AccuracyRecord

MOST = 200
LONGEST = 300
ELLIPSIS = "\N{HORIZONTAL ELLIPSIS}"


class Split(NamedTuple):
    """An evaluation split: its file's sha256, for each example a text or the name of its image (or
    None), and class names."""

    sha256: str
    texts: Sequence[str | None]
    labels: Sequence[str] | None


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
