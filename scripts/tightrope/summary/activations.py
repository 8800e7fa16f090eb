"""Comparison of models that differ only in their activation, for summary.json."""

from collections.abc import Iterable, Mapping
from typing import TypedDict

from tightrope.machine.host import host_key
from tightrope.records.accuracy import AccuracyRecord, change, comparable
from tightrope.records.latency import LatencyRecord
from tightrope.summary.accuracy import top_one
from tightrope.summary.result_types import (
    AccuracyChange,
    Attempt,
    LatencyFields,
    ReferenceAccuracy,
    VariantFields,
    nothing,
)
from tightrope.summary.results import latency_entry, variant_fields
from tightrope.variants import device_of, parse

Judged = Mapping[tuple[str, str], AccuracyRecord]
NO_CHANGE: AccuracyChange = nothing(AccuracyChange)


class ActivationRow(VariantFields, LatencyFields):
    """Latency of a variant paired with the same one of the reference; no times if it failed."""

    status: Attempt
    reason: str | None


class Activation(TypedDict):
    """A model compared with one that differs from it only in its activation."""

    model: str
    reference: str
    host: str
    device: str
    accuracy: ReferenceAccuracy | None
    latency: list[ActivationRow]


def activation_entries(
    records: Iterable[LatencyRecord],
    judged: Judged,
    *,
    references: Mapping[str, str],
    baselines: Mapping[str, Mapping[str, str]],
    budget: float,
) -> list[Activation]:
    """Return an entry per model, host and device, compared with the reference model.

    Each record holds latencies of a variant, in blocks that alternate with the same variant of the
    model that `references` names. `judged` holds the accuracy records by (model, variant); the
    accuracies of the baseline variants are compared. `budget` is a fraction.
    """
    groups: dict[tuple[str, str, str], list[LatencyRecord]] = {}
    for record in records:
        place = parse(record.variant).place
        groups.setdefault((record.model, host_key(record.host), place), []).append(record)
    return [
        {
            "model": model,
            "reference": references[model],
            "host": host,
            "device": device_of(place),
            "accuracy": accuracy_vs_reference(
                judged.get((model, baselines[model][place])),
                judged.get((references[model], baselines[references[model]][place])),
                budget,
            ),
            "latency": [row for record in group for row in rows_of(record)],
        }
        for (model, host, place), group in groups.items()
    ]


def accuracy_vs_reference(
    record: AccuracyRecord | None, reference: AccuracyRecord | None, budget: float
) -> ReferenceAccuracy | None:
    """Return a model's accuracy and its paired change against the reference model.

    None without predictions or labels. The change is None if the two were not evaluated on the same
    examples.
    """
    if record is None or not record.predictions or record.labels is None:
        return None
    right = record.right
    entry = top_one(right)
    if reference is None or reference.labels is None or not comparable(record, reference):
        return {**entry, **NO_CHANGE, "verdict": None}
    return {**entry, **change(right, reference.right, budget)}


def rows_of(record: LatencyRecord) -> list[ActivationRow]:
    """Return a row per shape of a record, or one row without times if it failed."""
    variant = variant_fields(parse(record.variant))
    common: ActivationRow = {
        "variant": variant["variant"],
        "device": variant["device"],
        "engine": variant["engine"],
        "precision": variant["precision"],
        "calibration": variant["calibration"],
        "status": record.status,
        "reason": reason_of(record),
    }
    return [{**common, **latency_entry(shape, record)} for shape in record.shapes] or [common]


def reason_of(record: LatencyRecord) -> str | None:
    """Return why there is no speed-up: the model's own engine failed, or the reference's."""
    if record.baseline_failed:
        return f"the reference: {record.baseline_failed}"
    return record.reason
