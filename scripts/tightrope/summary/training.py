"""Training entries of summary.json. Times are in seconds; None means not known."""

import statistics
from collections.abc import Iterable
from typing import Any

from msgspec.structs import replace

from tightrope.machine.host import host_key
from tightrope.machine.interference import MAX_FOREIGN_CORES
from tightrope.records.kept import Kept, disturbed_while, kept_of
from tightrope.records.training import Epoch, TrainingRecord
from tightrope.statistics import unpaired_speedup
from tightrope.summary.result_types import Attempt, Entry, Ratio
from tightrope.summary.results import NO_SPEEDUP

# settings in which compared trainings may differ, and their values in a plain training
PLAIN = {"compile": False, "amp": "off", "channels_last": False}


class Spread(Entry):
    """Mean, sample standard deviation (None for one), lowest and highest value over the seeds."""

    mean: float
    spread: float | None
    lowest: float
    highest: float

    @classmethod
    def of(cls, values: list[float]) -> "Spread | None":
        """Return that of these values, None without any."""
        if not values:
            return None
        deviation = statistics.stdev(values) if len(values) > 1 else None
        return cls(statistics.fmean(values), deviation, min(values), max(values))


class SeedRun(Entry):
    """One training: values of each epoch."""

    seed: int
    seconds: list[float]
    loss: list[float]
    accuracy: list[float]


class Training(Entry):
    """Speed and accuracy of a measured training; from `amp` on all None if it failed."""

    model: str
    host: str
    device: str
    status: Attempt
    reason: str | None
    measured: str
    threads: int
    unit: str | None
    recipe: dict[str, Any]
    activation: str | None
    epochs: int
    seeds: list[int]
    reference: str | None = None
    disturbed: str | None = None
    provisional: bool = False
    amp: str | None = None
    samples: int | None = None
    held_out_samples: int | None = None
    micro_batches: int | None = None
    epoch_s: Spread | None = None
    first_epoch_s: Spread | None = None
    compile_s: Spread | None = None
    samples_per_s: Spread | None = None
    loss: Spread | None = None
    accuracy: Spread | None = None
    peak_rss_bytes: int | None = None
    peak_device_bytes: int | None = None
    runs: list[SeedRun] | None = None
    speedup: Ratio | None = None
    accuracy_change: Spread | None = None


def training_entries(
    records: Iterable[TrainingRecord], *, accept_disturbed: bool = False
) -> list[Training]:
    """Return `training` of the summary, in record order."""
    records = list(records)
    return [
        training_entry(record, reference_of(record, records), accept_disturbed)
        for record in records
    ]


def training_entry(
    record: TrainingRecord, reference: TrainingRecord | None, accept_disturbed: bool
) -> Training:
    """Return the entry of a record, compared with its plain training (its own if it is plain).

    Means and spreads (sample standard deviations, None for one seed) are over the seeds. If other
    load disturbed all epochs of a seed after its first, `disturbed` gives the reason and there are
    no times; with `accept_disturbed` there are, and the entry is `provisional`.
    """
    counted = counted_epochs(record, accept=accept_disturbed)
    entry = Training(
        model=record.model,
        host=host_key(record.host),
        device=record.device,
        status=record.status,
        reason=record.reason,
        measured=record.measured,
        threads=record.threads,
        unit=record.unit,
        recipe=record.recipe,
        activation=record.activation,
        epochs=record.plan["epochs"],
        seeds=record.plan["seeds"],
        reference=reference.model if reference else None,
        disturbed=counted.disturbed,
        provisional=counted.provisional,
    )
    if record.status != "ok":
        return entry
    runs, times = record.runs, epoch_times(counted)
    rates = [run.samples / time for run, time in zip(runs, times, strict=False)]
    device = [one.peak_device_bytes for one in runs if one.peak_device_bytes is not None]
    lasts, of_epochs = [run.epochs[-1] for run in runs], ("seconds", "loss", "accuracy")
    return replace(
        entry,
        amp=runs[0].amp,
        samples=runs[0].samples,
        held_out_samples=runs[0].held_out_samples,
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
    if counted.disturbed and not counted.provisional:
        return []
    return [statistics.median(epoch.seconds for epoch in epochs) for epochs in counted.calls]


def reference_of(
    record: TrainingRecord, records: Iterable[TrainingRecord]
) -> TrainingRecord | None:
    """Return the plain training that differs only in compile, amp and channels_last, or None."""
    found = [one for one in records if is_plain(one) and alike(one) == alike(record)]
    return found[0] if found and found[0].status == "ok" else None


def is_plain(record: TrainingRecord) -> bool:
    """Return whether a training is a plain one; `amp` counts as resolved from `auto`."""
    amp = record.runs[0].amp if record.runs else record.recipe["amp"]
    return {**{key: record.recipe[key] for key in PLAIN}, "amp": amp} == PLAIN


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
