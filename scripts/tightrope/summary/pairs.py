"""Entries of what is compared with another: an engine without a cause of its time, an activation.

A training is compared with a plain one. Times are in seconds; None means not known.
"""

import statistics
from collections.abc import Iterable, Sequence
from typing import Any

from msgspec.structs import asdict, replace

from tightrope.decide.result import (
    NO_SPEEDUP,
    Attempt,
    ComparedAccuracy,
    Entry,
    LatencyRow,
    Measured,
    Ratio,
    Shape,
    same,
)
from tightrope.machine.host import host_key
from tightrope.machine.interference import MAX_FOREIGN_CORES
from tightrope.records.accuracy import change
from tightrope.records.latency import LatencyRecord
from tightrope.records.profile import CausesRecord
from tightrope.records.profile import RemovedCause as RecordedCause
from tightrope.records.record import (
    FEWEST_ROUNDS,
    Kept,
    Round,
    blocks_of,
    call_seconds,
    disturbed_while,
    kept,
    kept_of,
    time_ratio,
)
from tightrope.records.training import Epoch, TrainingRecord
from tightrope.statistics import unpaired_speedup
from tightrope.studies.study import Estimate
from tightrope.summary.accuracy import accuracy_between, top_one
from tightrope.summary.models import Judged
from tightrope.summary.results import latency_entry, measured_entry
from tightrope.summary.runs import Settings
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
    causes = []
    for cause in record.causes:
        counted = counted_rounds(record, cause, accept_disturbed)
        saved = call_s = None
        if len(counted.calls) >= FEWEST_ROUNDS:
            own, without = (blocks_of(counted.calls, engine) for engine in (0, 1))
            call_s, ratio = call_seconds(own).value, time_ratio(without, own)
            saved = Estimate(*(call_s * (1 - end) for end in (ratio.value, ratio.high, ratio.low)))
        low, high = (share * (call_s or cause.profiled_s) for share in (cause.low, cause.high))
        entry = RemovedCause(
            **same(cause, "cause", "setting", "reason"),
            **same(counted, "disturbed", "provisional"),
            shape=Shape(**cause.sizes),
            predicted_low=low,
            predicted_high=high,
            call_s=call_s,
            saved=saved,
            within=saved.low <= high and saved.high >= low if saved else None,
            rounds=len(counted.calls),
            disturbed_rounds=counted.disturbed_calls,
        )
        causes.append(entry)
    return Causes(**measured_entry(record), causes=causes)


def counted_rounds(record: CausesRecord, cause: RecordedCause, accept: bool) -> Kept[Round]:
    """Return what counts of the rounds of a cause; disturbed ones only where `accept` says so."""
    return kept(cause.rounds, FEWEST_ROUNDS, "a round of a cause", record.busiest, accept=accept)


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
    records: Iterable[LatencyRecord], judged: Judged, settings: Settings
) -> list[Activation]:
    """Return an entry per model, host and device, compared with the reference model.

    Each record holds latencies of a variant, in blocks that alternate with the same variant of the
    model that `settings.references` names. `judged` holds the accuracy records by (model, variant);
    the accuracies of the baseline variants are compared.
    """
    found: dict[tuple[str, str, str], Activation] = {}
    budget = settings.budget
    for record in records:
        model, place = record.model, parse(record.variant).place
        other, key = settings.references[model], (model, host_key(record.host), place)
        if key not in found:
            own, theirs = (
                judged.get((one, settings.baselines[one][place])) for one in (model, other)
            )
            accuracy, between = None, accuracy_between(own, theirs, budget)
            if own and between:
                # logits up to rounding prove nothing of two models
                paired = theirs and between.change and change(own.right, theirs.right, budget)
                accuracy = ComparedAccuracy(
                    **asdict(top_one(own.right)), **(asdict(paired) if paired else {})
                )
            found[key] = Activation(model, other, key[1], device_of(place), accuracy, [])
        failed = record.baseline_failed
        reason = f"the reference: {failed}" if failed else record.reason
        places = range(len(record.shapes))
        times: list[LatencyRow | None] = [latency_entry(record, place) for place in places]
        told = record.variant, record.status, reason
        found[key].rows.extend(ActivationRow(*told, one) for one in times or [None])
    return [*found.values()]


# settings in which compared trainings may differ, and their values in a plain training
PLAIN = {"compile": False, "amp": "off", "channels_last": False}


class Spread(Entry):
    """A number over the seeds."""

    mean: float
    spread: float | None
    lowest: float
    highest: float
    """`spread` is the sample standard deviation, None for one seed."""

    @classmethod
    def of(cls, values: list[float]) -> "Spread | None":
        """Return that of these values, None without any."""
        if not values:
            return None
        deviation = statistics.stdev(values) if len(values) > 1 else None
        return cls(statistics.fmean(values), deviation, min(values), max(values))


class SeedRun(Entry):
    """The training with one seed."""

    seed: int
    seconds: list[float]
    loss: list[float]
    accuracy: list[float]
    """The seed, and the values of each epoch."""


class Training(Entry):
    """Speed and accuracy of a measured training; from `amp` on all None if it failed."""

    model: str
    host: str
    device: str
    """The model, and where it was trained."""
    status: Attempt
    reason: str | None
    """Why it failed, else None."""
    measured: str
    """When, in UTC."""
    threads: int
    """As configured."""
    unit: str | None
    """Of a sample: `texts` or `images`; None if the training failed before it began."""
    recipe: dict[str, Any]
    """The complete one that was followed."""
    activation: str | None
    """The one that replaced the checkpoint's own, or None."""
    epochs: int
    seeds: list[int]
    """As configured."""
    reference: str | None = None
    """The model that it is compared with, None without one. It differs only in `compile`, `amp` and
    `channels_last`, and has none of them. For the reference itself this is its own name."""
    disturbed: str | None = None
    """That other load disturbed all epochs of a seed after the first, else None; then `epoch_s`,
    `first_epoch_s`, `samples_per_s` and the numbers of `speedup` are None."""
    provisional: bool = False
    """Whether they are given anyway (`latency.accept_disturbed`)."""
    amp: str | None = None
    """The type that was used."""
    samples: int | None = None
    """Per epoch."""
    held_out_samples: int | None = None
    """Of the train split, held out for the accuracy."""
    micro_batches: int | None = None
    """Into how many a batch was split to fit in memory, the most of any seed."""
    epoch_s: Spread | None = None
    """The median of a seed's epochs after the first, without disturbed ones."""
    first_epoch_s: Spread | None = None
    """With the compilation."""
    compile_s: Spread | None = None
    """None without compilation."""
    samples_per_s: Spread | None = None
    """Of the same epochs as `epoch_s`."""
    loss: Spread | None = None
    """Of the last epoch, the mean over its steps."""
    accuracy: Spread | None = None
    """After the last epoch."""
    peak_rss_bytes: int | None = None
    """Of the process, the highest of any seed."""
    peak_device_bytes: int | None = None
    """What PyTorch allocated on the GPU; None on the CPU."""
    runs: list[SeedRun] | None = None
    """One per seed."""
    speedup: Ratio | None = None
    """Epoch time of the reference over its own; None for the reference itself. The interval is a
    bootstrap over seeds, None for one seed; the two were not measured in alternating blocks."""
    accuracy_change: Spread | None = None
    """`accuracy` less that of the reference, seed by seed; None for the reference itself."""


def training_entries(
    records: Sequence[TrainingRecord], *, accept_disturbed: bool = False
) -> list[Training]:
    """Return the entry of each record, compared with its plain training."""
    return [training_entry(one, reference_of(one, records), accept_disturbed) for one in records]


def training_entry(
    record: TrainingRecord, reference: TrainingRecord | None, accept_disturbed: bool
) -> Training:
    """Return the entry of a record, compared with its plain training (its own if it is plain).

    With `accept_disturbed` one that was disturbed has times too, and is `provisional`.
    """
    counted = counted_epochs(record, accept=accept_disturbed)
    entry = Training(
        **same(record, "model", "device", "status", "reason", "measured"),
        **same(record, "threads", "unit", "recipe", "activation"),
        **same(counted, "disturbed", "provisional"),
        host=host_key(record.host),
        epochs=record.plan["epochs"],
        seeds=record.plan["seeds"],
        reference=reference.model if reference else None,
    )
    if record.status != "ok":
        return entry
    runs, times = record.runs, epoch_times(counted)
    rates = [run.samples / time for run, time in zip(runs, times, strict=False)]
    device = [one.peak_device_bytes for one in runs if one.peak_device_bytes is not None]
    lasts, of_epochs = [run.epochs[-1] for run in runs], ("seconds", "loss", "accuracy")
    return replace(
        entry,
        **same(runs[0], "amp", "samples", "held_out_samples"),
        micro_batches=max(run.micro_batches for run in runs),
        epoch_s=Spread.of(times),
        first_epoch_s=Spread.of([run.epochs[0].seconds for run in runs] if times else []),
        compile_s=Spread.of([run.compile_s for run in runs if run.compile_s is not None]),
        samples_per_s=Spread.of(rates),
        loss=Spread.of([last.loss for last in lasts]),
        accuracy=Spread.of([last.accuracy for last in lasts]),
        peak_rss_bytes=max(run.peak_rss_bytes for run in runs),
        peak_device_bytes=max(device, default=None),
        runs=[
            SeedRun(run.seed, *([getattr(one, name) for one in run.epochs] for name in of_epochs))
            for run in runs
        ],
        **compared(record, reference, times, accept_disturbed),
    )


def counted_epochs(record: TrainingRecord, *, accept: bool = False) -> Kept[list[Epoch]]:
    """Return of each seed the epochs that count, without the first, which may have compiled.

    It is disturbed where other load left none of a seed, see `kept_of`.
    """
    every = [run.epochs[1:] for run in record.runs]
    quiet = [[one for one in own if one.foreign_cores <= MAX_FOREIGN_CORES] for own in every]

    def why() -> str:
        lost = (own for own, left in zip(every, quiet, strict=True) if not left)
        cores = max(one.foreign_cores for own in lost for one in own)
        return disturbed_while("every epoch of a seed", cores, record.busiest)

    return kept_of(every, [one for one in quiet if one], len(every), why, accept=accept)


def epoch_times(counted: Kept[list[Epoch]]) -> list[float]:
    """Return the median seconds of each seed's epochs that count; empty where one has none."""
    return [statistics.median(epoch.seconds for epoch in epochs) for epochs in counted.counted]


def reference_of(
    record: TrainingRecord, records: Iterable[TrainingRecord]
) -> TrainingRecord | None:
    """Return the plain training that differs only in compile, amp and channels_last, or None."""
    for one in records:
        # resolved from `auto`
        amp = one.runs[0].amp if one.runs else one.recipe["amp"]
        plain = {**{key: one.recipe[key] for key in PLAIN}, "amp": amp} == PLAIN
        if plain and alike(one) == alike(record):
            return one if one.status == "ok" else None
    return None


def alike(record: TrainingRecord) -> list[Any]:
    """Return the properties that compared trainings must share."""
    differ = (*PLAIN, "device")  # record.device, the resolved device, is compared instead
    recipe = {key: value for key, value in record.recipe.items() if key not in differ}
    where = [host_key(record.host), record.device, record.threads, record.libraries]
    weights = [record.activation, record.source_sha256, record.data_sha256]
    return [recipe, record.plan, *weights, *where]


def compared(
    record: TrainingRecord, reference: TrainingRecord | None, times: list[float], accept: bool
) -> dict[str, Any]:
    """Return `speedup`, reference epoch time over own, and `accuracy_change`.

    Both are None for the reference itself or without one. The verdict is `disturbed` if either
    training has no times; the interval ends are None for a single seed, which has no spread. The
    change of accuracy is paired by seed, which evaluates both on the same examples.
    """
    if reference is None or reference is record:
        return {}
    theirs = epoch_times(counted_epochs(reference, accept=accept))
    speedup = Ratio.of(unpaired_speedup(times, theirs)) if times and theirs else NO_SPEEDUP
    if len(record.runs) == 1:
        speedup = replace(speedup, low=None, high=None)
    changes = [
        own.epochs[-1].accuracy - other.epochs[-1].accuracy
        for own, other in zip(record.runs, reference.runs, strict=True)
    ]
    return {"speedup": speedup, "accuracy_change": Spread.of(changes)}
