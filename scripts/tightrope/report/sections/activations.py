"""Report section on models that differ in their activation: accuracy and speed."""

from collections.abc import Mapping, Sequence
from typing import Any

from tightrope.decide.result import ComparedAccuracy
from tightrope.report.tables import grouped
from tightrope.summary.document import Summary
from tightrope.summary.pairs import Activation, ActivationRow
from tightrope.variants import at_place

# reference, host, device
GroupKey = tuple[str, str, str]
REFERENCE = "it is the reference"


def activations_section(summary: Summary, hosts: Mapping[str, str]) -> list[dict[str, Any]]:
    """Return two tables for each reference, host and device.

    `hosts` are names by fingerprint, empty for a single host.
    """
    groups = grouped(((one.reference, one.host, one.device), one) for one in summary.activations)
    return [compared(summary, key, group, hosts) for key, group in groups.items()]


def compared(
    summary: Summary, key: GroupKey, group: Sequence[Activation], hosts: Mapping[str, str]
) -> dict[str, Any]:
    """Return the models of one reference as `rows`, it first, then by accuracy, and their `times`.

    Those of the reference itself are at the same shapes and with the same engines. `key`
    holds reference, host and device.
    """
    reference, host, device = key
    model = summary.models.get(reference)
    baseline = at_place(model.baselines if model else {}, device, host)
    own = {
        one.variant: one for one in summary.results if (one.model, one.host) == (reference, host)
    }
    group = sorted(group, key=lambda one: -(one.accuracy.top1 if one.accuracy else 0.0))
    judged: dict[str, ComparedAccuracy | None] = {
        reference: own[baseline].accuracy if baseline in own else None
    }
    judged |= {one.model: one.accuracy for one in group}
    known = {name: one.activation for name, one in summary.models.items()}
    activations = {name: known.get(name) or name for name in judged}
    here = [one for one in summary.training if one.host == host and one.status == "ok"]
    trainings = {one.model: one for one in here}
    rows: list[dict[str, Any]] = [
        {
            "model": name,
            "activation": activations[name],
            "accuracy": accuracy,
            "training": trainings.get(name),
        }
        for name, accuracy in judged.items()
    ]
    times = [
        {"model": one.model, "activation": activations[one.model], **time_of(row)}
        for one in group
        for row in one.rows
    ]
    own_times = []
    places = dict.fromkeys((one["variant"], one["shape"]) for one in times if one["shape"])
    for variant, shape in places:
        row = own[variant].at(shape) if variant in own else None
        told = {"model": reference, "variant": variant, "shape": shape, "reason": REFERENCE}
        own_times.append({**told, "call_s": row and row.paired_s, "speedup": None, "noisy": False})
    return {
        "reference": reference,
        "activation": activations[reference],
        "host": hosts.get(host),
        "rows": rows,
        "times": [*own_times, *times],
        "trained": any(row["training"] and row["training"].epoch_s for row in rows),
        "device_memory": device == "cuda",
        "fastest": max([1, *(one["speedup"].high or 1 for one in times if one["speedup"])]),
    }


def time_of(row: ActivationRow) -> dict[str, Any]:
    """Return time and speed-up of a row, with the `reason` where there is none."""
    found = row.latency
    return {
        "variant": row.variant,
        "shape": found.shape if found else None,
        "call_s": found.p50_s or found.mean_s if found else None,
        "speedup": found.speedup if found and found.speedup and found.speedup.ratio else None,
        "noisy": bool(found and found.noisy),
        "reason": row.reason or (found and found.disturbed) or "not measured",
    }
