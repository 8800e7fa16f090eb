"""Training entries of summary.json. Times are in seconds; None means not known."""

import statistics
from collections.abc import Iterable
from typing import Any

from msgspec.structs import replace

from tightrope.machine.host import host_key
from tightrope.machine.interference import MAX_FOREIGN_CORES
from tightrope.records.kept import disturbed_while
from tightrope.records.training import Epoch, TrainingRecord
from tightrope.records.training import SeedRun as RecordedRun
from tightrope.statistics import speed_verdict, unpaired_speedup
from tightrope.summary.measured import Attempt, Entry, Ratio
from tightrope.summary.results import NO_SPEEDUP

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

    An epoch's time is the median over a seed's undisturbed epochs, without the first; means and
    spreads (sample standard deviations, None for one seed) are over the seeds. If other load
    disturbed all these epochs of a seed, `disturbed` gives the reason and there are no times; with
    `accept_disturbed` there are, and the entry is `provisional`.
    """
    disturbed = why_disturbed(record)
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
        disturbed=disturbed,
        provisional=bool(disturbed and accept_disturbed),
    )
    if record.status != "ok":
        return entry
    runs, times = record.runs, epoch_times(record, accept_disturbed)
    device = [one.peak_device_bytes for one in runs if one.peak_device_bytes is not None]
    return replace(
        entry,
        amp=runs[0].amp,
        samples=runs[0].samples,
        held_out_samples=runs[0].held_out_samples,
        micro_batches=max(run.micro_batches for run in runs),
        epoch_s=Spread.of(times),
        first_epoch_s=Spread.of([run.epochs[0].seconds for run in runs] if times else []),
        compile_s=Spread.of([run.compile_s for run in runs if run.compile_s is not None]),
        samples_per_s=Spread.of(
            [run.samples / time for run, time in zip(runs, times, strict=False)]
        ),
        loss=Spread.of([run.epochs[-1].loss for run in runs]),
        accuracy=Spread.of(accuracies(record)),
        peak_rss_bytes=max(run.peak_rss_bytes for run in runs),
        peak_device_bytes=max(device, default=None),
        runs=[seed_run(run) for run in runs],
        speedup=speedup_entry(record, reference, accept_disturbed),
        accuracy_change=change_by_seed(record, reference),
    )


def seed_run(run: RecordedRun) -> SeedRun:
    """Return the values of each epoch of a seed."""
    names = ("seconds", "loss", "accuracy")
    return SeedRun(run.seed, *([getattr(one, name) for one in run.epochs] for name in names))


def epoch_times(record: TrainingRecord, accept_disturbed: bool) -> list[float]:
    """Return each seed's median epoch seconds, without the first epoch, which may have compiled.

    Empty if other load disturbed all these epochs of any seed.
    """
    found = [run.epochs[1:] if accept_disturbed else undisturbed(run) for run in record.runs]
    if not all(found):
        return []
    return [statistics.median(epoch.seconds for epoch in epochs) for epochs in found]


def undisturbed(run: RecordedRun) -> list[Epoch]:
    """Return the epochs of a seed after the first that other load did not disturb."""
    return [epoch for epoch in run.epochs[1:] if epoch.foreign_cores <= MAX_FOREIGN_CORES]


def why_disturbed(record: TrainingRecord) -> str | None:
    """Report that other load disturbed all epochs of a seed after the first, else None."""
    hit = [run for run in record.runs if not undisturbed(run)]
    if not hit:
        return None
    cores = max(epoch.foreign_cores for run in hit for epoch in run.epochs[1:])
    return disturbed_while("every epoch of a seed", cores, record.busiest)


def accuracies(record: TrainingRecord) -> list[float]:
    """Return the accuracy of each seed after its last epoch."""
    return [run.epochs[-1].accuracy for run in record.runs]


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


def speedup_entry(
    record: TrainingRecord, reference: TrainingRecord | None, accept_disturbed: bool
) -> Ratio | None:
    """Return reference epoch time over own; None for the reference itself or without one.

    The interval ends are None for a single seed, which has no spread. The verdict is `disturbed` if
    either training has no times.
    """
    if reference is None or reference is record:
        return None
    own, theirs = (epoch_times(one, accept_disturbed) for one in (record, reference))
    if not own or not theirs:
        return NO_SPEEDUP
    ratio = unpaired_speedup(own, theirs)
    known = len(record.runs) > 1
    return Ratio(
        ratio=ratio.value,
        low=ratio.low if known else None,
        high=ratio.high if known else None,
        verdict=speed_verdict(ratio),
    )


def change_by_seed(record: TrainingRecord, reference: TrainingRecord | None) -> Spread | None:
    """Return the accuracy change against the reference, paired by seed.

    A seed evaluates both on the same examples. None for the reference itself or without one.
    """
    if reference is None or reference is record:
        return None
    pairs = zip(accuracies(record), accuracies(reference), strict=True)
    return Spread.of([own - theirs for own, theirs in pairs])
