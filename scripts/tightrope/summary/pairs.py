"""Entries of what is timed in pairs: an engine without a cause of its time, another activation.

Times are in seconds per call; None means not known.
"""

from collections.abc import Iterable, Mapping, Sequence

from msgspec.structs import asdict

from tightrope.machine.host import host_key
from tightrope.records.accuracy import AccuracyRecord, change, comparable
from tightrope.records.kept import Kept, kept
from tightrope.records.latency import LatencyRecord
from tightrope.records.profile import CausesRecord
from tightrope.records.profile import RemovedCause as RecordedCause
from tightrope.records.record import FEWEST_ROUNDS, Round, blocks_of, call_seconds, time_ratio
from tightrope.studies.study import Estimate
from tightrope.summary.accuracy import ComparedAccuracy, top_one
from tightrope.summary.measured import Attempt, Entry, Measured, Shape, measured_entry
from tightrope.summary.results import LatencyRow, latency_entry
from tightrope.variants import device_of, parse


class RemovedCause(Entry):
    """A cause of the time of a call at one shape, and what the setting that removes it saves."""

    shape: Shape
    cause: str
    setting: str
    """Where, the cause in words, and what removes it."""
    predicted_low: float
    predicted_high: float
    """Seconds per call that the profile predicts to be saved."""
    call_s: float | None
    """Of the variant."""
    saved: Estimate | None
    """Seconds per call that the engine without the cause takes less, timed beside the variant."""
    within: bool | None
    """Whether the predicted and the measured interval have a point in common."""
    rounds: int
    disturbed_rounds: int
    """Those that count, and those that do not."""
    disturbed: str | None
    """Why too few are undisturbed, else None; then there are no numbers."""
    provisional: bool
    """Whether they are given anyway (`latency.accept_disturbed`)."""
    reason: str | None
    """Why it was not measured, else None."""


class Causes(Measured):
    """The causes of a profiled variant's time that a setting removes."""

    causes: list[RemovedCause]
    """One per cause and shape."""


def causes_entry(record: CausesRecord, *, accept_disturbed: bool = False) -> Causes:
    """Return the entry of a causes record.

    A cause that other load left too few rounds has no saving; with `accept_disturbed` all rounds
    count for it, and it is `provisional`.
    """
    causes = [removed(record, one, accept_disturbed) for one in record.causes]
    return Causes(**measured_entry(record), causes=causes)


def removed(record: CausesRecord, cause: RecordedCause, accept_disturbed: bool) -> RemovedCause:
    """Return the entry of one cause."""
    counted = counted_rounds(record, cause, accept_disturbed)
    measured = len(counted.calls) >= FEWEST_ROUNDS
    saved = saving(counted.calls) if measured else None
    call_s = call_seconds(blocks_of(counted.calls, 0)).value if measured else None
    low, high = (share * (call_s or cause.profiled_s) for share in (cause.low, cause.high))
    return RemovedCause(
        shape=Shape(**cause.sizes),
        cause=cause.cause,
        setting=cause.setting,
        predicted_low=low,
        predicted_high=high,
        call_s=call_s,
        saved=saved,
        within=saved.low <= high and saved.high >= low if saved else None,
        rounds=len(counted.calls),
        disturbed_rounds=counted.disturbed_calls,
        disturbed=counted.disturbed,
        provisional=counted.provisional,
        reason=cause.reason,
    )


def counted_rounds(record: CausesRecord, cause: RecordedCause, accept: bool) -> Kept[Round]:
    """Return what counts of the rounds of a cause; disturbed ones only where `accept` says so."""
    return kept(cause.rounds, FEWEST_ROUNDS, "a round of a cause", record.busiest, accept=accept)


def saving(rounds: Sequence[Round]) -> Estimate:
    """Return the seconds per call that the second engine takes less than the first."""
    own, without = blocks_of(rounds, 0), blocks_of(rounds, 1)
    call_s, ratio = call_seconds(own).value, time_ratio(without, own)
    return Estimate(*(call_s * (1 - end) for end in (ratio.value, ratio.high, ratio.low)))


Judged = Mapping[tuple[str, str], AccuracyRecord]


class ActivationRow(Entry):
    """The latency of a variant that both models have, at one shape."""

    variant: str
    """Of both models."""
    status: Attempt
    reason: str | None
    """Why there is no speed-up: of this engine, or of the reference's; else None."""
    latency: LatencyRow | None
    """Its `speedup` is the time of the reference's engine over its own, in alternating blocks of
    the two. A variant that could not be timed has one row, and None here."""


class Activation(Entry):
    """A model compared with one that differs from it only in `activation`."""

    model: str
    reference: str
    """The model, and the other one, which has the checkpoint's own activation, or is the first of
    them."""
    host: str
    device: str
    """Where both were measured."""
    accuracy: ComparedAccuracy | None
    """Of the baseline variant of that device; its change is from the same variant of the reference.
    None without labels."""
    rows: list[ActivationRow]
    """One per variant and shape."""


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
        Activation(
            model=model,
            reference=references[model],
            host=host,
            device=device_of(place),
            accuracy=accuracy_vs_reference(
                judged.get((model, baselines[model][place])),
                judged.get((references[model], baselines[references[model]][place])),
                budget,
            ),
            rows=[row for record in group for row in rows_of(record)],
        )
        for (model, host, place), group in groups.items()
    ]


def accuracy_vs_reference(
    record: AccuracyRecord | None, reference: AccuracyRecord | None, budget: float
) -> ComparedAccuracy | None:
    """Return a model's accuracy and its paired change against the reference model.

    None without predictions or labels. The change is None if the two were not evaluated on the same
    examples.
    """
    if record is None or not record.predictions or record.labels is None:
        return None
    right = asdict(top_one(record.right))
    if reference is None or reference.labels is None or not comparable(record, reference):
        return ComparedAccuracy(**right)
    return ComparedAccuracy(**right, **asdict(change(record.right, reference.right, budget)))


def rows_of(record: LatencyRecord) -> list[ActivationRow]:
    """Return a row per shape of a record, or one row without times if it failed."""
    failed = record.baseline_failed
    reason = f"the reference: {failed}" if failed else record.reason
    places = range(len(record.shapes))
    times: list[LatencyRow | None] = [latency_entry(record, place) for place in places]
    return [ActivationRow(record.variant, record.status, reason, one) for one in times or [None]]
