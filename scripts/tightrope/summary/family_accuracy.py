"""Accuracy of the engines of a family, compared on the same examples, for summary.json."""

from collections.abc import Mapping

from tightrope.records.accuracy import AccuracyRecord
from tightrope.records.paired_accuracy import comparable, compared
from tightrope.summary.activations import NO_CHANGE
from tightrope.summary.family_types import FamilyAccuracy

# accuracy records by model and variant
Judged = Mapping[tuple[str, str], AccuracyRecord]


def accuracy_against(
    record: AccuracyRecord | None, reference: AccuracyRecord | None, budget: float
) -> FamilyAccuracy | None:
    """Return the change of accuracy of `record` from `reference`, which may be another model's.

    None without predictions or labels. `budget` is a fraction.
    """
    if record is None or not record.predictions or record.labels is None:
        return None
    if reference is None or not reference.predictions or reference.labels is None:
        return not_compared("the other one has no accuracy")
    if reference.data_sha256 != record.data_sha256:
        return not_compared("evaluated on other examples")
    if not comparable(record, reference):
        return not_compared("evaluated on a machine with other numerics")
    both = zip(record.predictions, reference.predictions, strict=False)
    return {
        **compared(record, reference, budget),
        "flips": sum(ours != theirs for ours, theirs in both),
        "reason": None,
    }


def not_compared(reason: str) -> FamilyAccuracy:
    """Return the entry of a pair that cannot be compared."""
    return {**NO_CHANGE, "verdict": None, "flips": None, "reason": reason}
