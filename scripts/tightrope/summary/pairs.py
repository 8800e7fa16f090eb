"""Entries of what is timed in pairs: an engine without a cause of its time, another activation.

Times are in seconds per call; None means not known.
"""

from collections.abc import Iterable, Mapping

from msgspec.structs import asdict

from tightrope.machine.host import host_key
from tightrope.records.accuracy import AccuracyRecord, change, comparable
from tightrope.records.kept import Kept, kept
from tightrope.records.latency import LatencyRecord
from tightrope.records.profile import CausesRecord
from tightrope.records.profile import RemovedCause as RecordedCause
from tightrope.records.record import FEWEST_ROUNDS, Round, blocks_of, call_seconds, time_ratio
from tightrope.studies.study import Estimate
from tightrope.summary.accuracy import top_one
from tightrope.summary.measured import Measured, measured_entry
from tightrope.summary.models import Judged
from tightrope.summary.result_types import Attempt, ComparedAccuracy, Entry, LatencyRow, Shape
from tightrope.summary.results import latency_entry
from tightrope.variants import device_of, parse


class RemovedCause(Entry):
    """A cause of the time of a call at one shape, and what the setting that removes it saves.

    The saving is predicted from `predicted_low` to `predicted_high`; `saved`, the seconds per call
    that an engine without the cause takes less, is measured beside the variant, whose call takes
    `call_s`. It is `within` where both intervals have a point in common. `rounds` count;
    `disturbed_rounds` do not. `disturbed` says that too many of them are, and the numbers are None
    unless they are `provisional`. `reason` says why it could not be measured.
    """

    shape: Shape
    cause: str
    setting: str
    predicted_low: float
    predicted_high: float
    call_s: float | None
    saved: Estimate | None
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
    causes = [removed(record, one, accept_disturbed) for one in record.causes]
    return Causes(**measured_entry(record), causes=causes)


def removed(record: CausesRecord, cause: RecordedCause, accept_disturbed: bool) -> RemovedCause:
    """Return the entry of one cause."""
    counted = counted_rounds(record, cause, accept_disturbed)
    saved = call_s = None
    if len(counted.calls) >= FEWEST_ROUNDS:
        own, without = (blocks_of(counted.calls, engine) for engine in (0, 1))
        call_s, ratio = call_seconds(own).value, time_ratio(without, own)
        saved = Estimate(*(call_s * (1 - end) for end in (ratio.value, ratio.high, ratio.low)))
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


class ActivationRow(Entry):
    """Latency of a variant paired with the same one of the reference; None if it failed."""

    variant: str
    status: Attempt
    reason: str | None
    latency: LatencyRow | None


class Activation(Entry):
    """A model compared with one that differs from it only in its activation."""

    model: str
    reference: str
    host: str
    device: str
    accuracy: ComparedAccuracy | None
    rows: list[ActivationRow]


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
