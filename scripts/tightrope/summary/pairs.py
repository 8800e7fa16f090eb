"""Entries of what is timed in pairs: an engine without a cause of its time, another activation.

Times are in seconds per call; None means not known.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import TypedDict

from tightrope.machine.host import host_key
from tightrope.records.accuracy import AccuracyRecord, change, comparable
from tightrope.records.kept import Kept, kept
from tightrope.records.latency import LatencyRecord
from tightrope.records.profile import CausesRecord
from tightrope.records.profile import RemovedCause as RecordedCause
from tightrope.records.record import FEWEST_ROUNDS, Round, blocks_of, call_seconds, time_ratio
from tightrope.summary.accuracy import top_one
from tightrope.summary.measured import Measured, measured_entry
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


class Saving(TypedDict):
    """Seconds per call that an engine without the cause takes less, with the 95 % interval."""

    value: float
    low: float
    high: float


class RemovedCause(TypedDict):
    """A cause of the time of a call at one shape, and what the setting that removes it saves.

    The saving is predicted from `predicted_low` to `predicted_high`, as shares of the call; `saved`
    is measured beside the variant, whose call takes `call_s`. It is `within` where both intervals
    have a point in common. `rounds` count; `disturbed_rounds` do not. `disturbed` says that too
    many of them are, and the numbers are None unless they are `provisional`. `reason` says why it
    could not be measured.
    """

    batch: int
    sequence: int | None
    height: int | None
    width: int | None
    cause: str
    setting: str
    predicted_low: float
    predicted_high: float
    call_s: float | None
    saved: Saving | None
    within: bool | None
    rounds: int
    disturbed_rounds: int
    disturbed: str | None
    provisional: bool
    reason: str | None


class Causes(Measured):
    """The causes of a profiled variant's time that a setting removes."""

    causes: list[RemovedCause]


def causes_entry(record: CausesRecord, *, accept_disturbed: bool = False) -> Causes:
    """Return the entry of a causes record.

    A cause that other load left too few rounds has no saving; with `accept_disturbed` all rounds
    count for it, and it is `provisional`.
    """
    return {
        **measured_entry(record),
        "causes": [removed(record, one, accept_disturbed) for one in record.causes],
    }


def removed(record: CausesRecord, cause: RecordedCause, accept_disturbed: bool) -> RemovedCause:
    """Return the entry of one cause."""
    counted = counted_rounds(record, cause, accept_disturbed)
    measured = len(counted.calls) >= FEWEST_ROUNDS
    saved = saving(counted.calls) if measured else None
    call_s = call_seconds(blocks_of(counted.calls, 0)).value if measured else None
    low, high = (share * (call_s or cause.profiled_s) for share in (cause.low, cause.high))
    return {
        "batch": cause.batch,
        "sequence": cause.sequence,
        "height": cause.height,
        "width": cause.width,
        "cause": cause.cause,
        "setting": cause.setting,
        "predicted_low": low,
        "predicted_high": high,
        "call_s": call_s,
        "saved": saved,
        "within": saved["low"] <= high and saved["high"] >= low if saved else None,
        "rounds": len(counted.calls),
        "disturbed_rounds": counted.disturbed_calls,
        "disturbed": counted.disturbed,
        "provisional": counted.provisional,
        "reason": cause.reason,
    }


def counted_rounds(record: CausesRecord, cause: RecordedCause, accept: bool) -> Kept[Round]:
    """Return what counts of the rounds of a cause; disturbed ones only where `accept` says so."""
    return kept(cause.rounds, FEWEST_ROUNDS, "a round of a cause", record.busiest, accept=accept)


def saving(rounds: Sequence[Round]) -> Saving:
    """Return the seconds per call that the second engine takes less than the first."""
    own, without = blocks_of(rounds, 0), blocks_of(rounds, 1)
    call_s, ratio = call_seconds(own).value, time_ratio(without, own)
    return {
        "value": call_s * (1 - ratio.value),
        "low": call_s * (1 - ratio.high),
        "high": call_s * (1 - ratio.low),
    }


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
    places = range(len(record.shapes))
    return [{**common, **latency_entry(record, place)} for place in places] or [common]


def reason_of(record: LatencyRecord) -> str | None:
    """Return why there is no speed-up: the model's own engine failed, or the reference's."""
    if record.baseline_failed:
        return f"the reference: {record.baseline_failed}"
    return record.reason
