"""From the records of trainings to their entries in the summary, each beside the plain one."""

import statistics
from collections.abc import Iterable
from typing import Any

from tightrope.machine.host import fingerprint
from tightrope.machine.interference import FOREIGN
from tightrope.records.training import TrainingRecord
from tightrope.statistics import speed_verdict, unpaired_speedup
from tightrope.summary.noise import disturbed_while
from tightrope.summary.results import DISTURBED

Entry = dict[str, Any]
# what two trainings that are compared may differ in, and what the plain one has of it
PLAIN = {"compile": False, "amp": "off", "channels_last": False}


def training_entries(
    records: Iterable[TrainingRecord], *, accept_disturbed: bool = False
) -> list[Entry]:
    """`training` of the summary, in the order of the records."""
    records = list(records)
    return [
        training_entry(record, reference_of(record, records), accept_disturbed)
        for record in records
    ]


def training_entry(
    record: TrainingRecord, reference: TrainingRecord | None, accept_disturbed: bool
) -> Entry:
    """The entry of one record beside that of the plain training, its own where it is that one.

    An epoch's time is the median of the epochs of a seed without the first, and without those that
    other load disturbed; means and spreads (sample standard deviations, None for one seed) are over
    the seeds. Where it disturbed all of a seed, `disturbed` has the reason and there are no times;
    with `accept_disturbed` there are, and the entry is `provisional`.
    """
    ok = record.status == "ok"
    disturbed = why_disturbed(record)
    return {
        "model": record.model,
        "host": fingerprint(record.host),
        "device": record.device,
        "status": record.status,
        "reason": record.reason,
        "measured": record.measured,
        "threads": record.threads,
        "unit": record.unit,
        "recipe": record.recipe,
        "activation": record.activation,
        "epochs": record.plan["epochs"],
        "seeds": record.plan["seeds"],
        "reference": reference.model if reference else None,
        "disturbed": disturbed,
        "provisional": bool(disturbed and accept_disturbed),
        **(measured(record, accept_disturbed) if ok else dict.fromkeys(MEASURED)),
        "speedup": speedup_entry(record, reference, accept_disturbed) if ok else None,
        "accuracy_change": accuracy_change(record, reference) if ok else None,
    }


def measured(record: TrainingRecord, accept_disturbed: bool) -> Entry:
    """What the runs of a record come to."""
    runs, times = record.runs, epoch_times(record, accept_disturbed)
    rates = [run["samples"] / time for run, time in zip(runs, times, strict=False)]
    first = [run["epochs"][0]["seconds"] for run in runs] if times else []
    device = [run["peak_device_bytes"] for run in runs]
    return {
        "amp": runs[0]["amp"],
        "samples": runs[0]["samples"],
        "judged_samples": runs[0]["judged_samples"],
        "parts": max(run["parts"] for run in runs),
        "epoch_s": spread(times),
        "first_epoch_s": spread(first),
        "compile_s": spread([run["compile_s"] for run in runs if run["compile_s"] is not None]),
        "samples_per_s": spread(rates),
        "loss": spread([run["epochs"][-1]["loss"] for run in runs]),
        "accuracy": spread(accuracies(record)),
        "peak_rss_bytes": max(run["peak_rss_bytes"] for run in runs),
        "peak_device_bytes": max(device) if None not in device else None,
        "runs": [
            {
                "seed": run["seed"],
                **{
                    name: [epoch[name] for epoch in run["epochs"]]
                    for name in ("seconds", "loss", "accuracy")
                },
            }
            for run in runs
        ],
    }


MEASURED = (
    *("amp", "samples", "judged_samples", "parts", "epoch_s", "first_epoch_s", "compile_s"),
    *("samples_per_s", "loss", "accuracy", "peak_rss_bytes", "peak_device_bytes", "runs"),
)


def epoch_times(record: TrainingRecord, accept_disturbed: bool) -> list[float]:
    """For each seed the median seconds of its epochs after the first, which may have compiled.

    Empty where other load disturbed all of these of a seed.
    """
    found = [run["epochs"][1:] if accept_disturbed else undisturbed(run) for run in record.runs]
    if not all(found):
        return []
    return [statistics.median(epoch["seconds"] for epoch in epochs) for epochs in found]


def undisturbed(run: Entry) -> list[Entry]:
    """The epochs of a seed after the first in which no other load was seen."""
    return [epoch for epoch in run["epochs"][1:] if epoch["foreign_cores"] <= FOREIGN]


def why_disturbed(record: TrainingRecord) -> str | None:
    """That other load disturbed all epochs of a seed after the first, in words, else None."""
    hit = [run for run in record.runs if not undisturbed(run)]
    if not hit:
        return None
    cores = max(epoch["foreign_cores"] for run in hit for epoch in run["epochs"][1:])
    return disturbed_while("every epoch of a seed", cores, record.loudest)


def accuracies(record: TrainingRecord) -> list[float]:
    """The accuracy of each seed after its last epoch."""
    return [run["epochs"][-1]["accuracy"] for run in record.runs]


def spread(values: list[float]) -> Entry | None:
    """Mean, sample standard deviation, lowest and highest of values; None of none."""
    if not values:
        return None
    return {
        "mean": statistics.fmean(values),
        "spread": statistics.stdev(values) if len(values) > 1 else None,
        "lowest": min(values),
        "highest": max(values),
    }


def reference_of(
    record: TrainingRecord, records: Iterable[TrainingRecord]
) -> TrainingRecord | None:
    """The plain training that differs from `record` in nothing but compile, amp, channels_last."""
    found = [one for one in records if is_plain(one) and alike(one) == alike(record)]
    return found[0] if found and found[0].status == "ok" else None


def is_plain(record: TrainingRecord) -> bool:
    """Whether it is the training that others are compared with; amp is what auto came to."""
    amp = record.runs[0]["amp"] if record.runs else record.recipe["amp"]
    return {**{key: record.recipe[key] for key in PLAIN}, "amp": amp} == PLAIN


def alike(record: TrainingRecord) -> list[Any]:
    """What must be the same in trainings that are compared."""
    differ = (*PLAIN, "device")  # the one that it came to is compared
    recipe = {key: value for key, value in record.recipe.items() if key not in differ}
    where = [fingerprint(record.host), record.device, record.threads, record.libraries]
    weights = [record.activation, record.source_sha256, record.data_sha256]
    return [recipe, record.plan, *weights, *where]


def speedup_entry(
    record: TrainingRecord, reference: TrainingRecord | None, accept_disturbed: bool
) -> Entry | None:
    """Epoch time of the reference over its own; None for the reference itself or without one.

    The ends are None where one seed tells nothing of its spread. Without the times of one of the
    two it is disturbed.
    """
    if reference is None or reference is record:
        return None
    own, theirs = (epoch_times(one, accept_disturbed) for one in (record, reference))
    if not own or not theirs:
        return {**dict.fromkeys(("ratio", "low", "high")), "verdict": DISTURBED}
    ratio = unpaired_speedup(own, theirs)
    known = len(record.runs) > 1
    return {
        "ratio": ratio.value,
        "low": ratio.low if known else None,
        "high": ratio.high if known else None,
        "verdict": speed_verdict(ratio),
    }


def accuracy_change(record: TrainingRecord, reference: TrainingRecord | None) -> Entry | None:
    """The accuracy less that of the reference, seed by seed; a seed judges both by the same."""
    if reference is None or reference is record:
        return None
    pairs = zip(accuracies(record), accuracies(reference), strict=True)
    return spread([own - theirs for own, theirs in pairs])
