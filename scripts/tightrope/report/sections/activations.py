"""Report section on models that differ in their activation: accuracy and speed."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from tightrope.report.sections.figures import (
    describe_speedups,
    join_title,
    row_at,
    speedup_chart,
    speedup_mark,
)
from tightrope.report.sections.training import format_seconds
from tightrope.report.style.numbers import percentage, points, points_interval, shape_label, sizes
from tightrope.summary.accuracy import ComparedAccuracy
from tightrope.summary.document import Summary
from tightrope.summary.measured import Shape
from tightrope.summary.pairs import Activation, ActivationRow
from tightrope.variants import at_place, parse

# reference, host, device
GroupKey = tuple[str, str, str]


def activations_section(summary: Summary, hosts: Mapping[str, str]) -> list[dict[str, Any]]:
    """Return two tables with a figure per shape, for each reference, host and device.

    `hosts` are names by fingerprint, empty for a single host.
    """
    groups: dict[GroupKey, list[Activation]] = {}
    for entry in summary.activations:
        groups.setdefault((entry.reference, entry.host, entry.device), []).append(entry)
    return [compared(summary, key, group, hosts) for key, group in groups.items()]


def compared(
    summary: Summary, key: GroupKey, group: Sequence[Activation], hosts: Mapping[str, str]
) -> dict[str, Any]:
    """Return the models of one reference as `rows`, it first, then by accuracy, and their `times`.

    `key` holds reference, host and device.
    """
    reference, host, device = key
    group = sorted(group, key=lambda one: -(one.accuracy.top1 if one.accuracy else 0.0))
    rows = [
        {**model_row(summary, reference, host, own_accuracy(summary, key)), "plain": True},
        *(model_row(summary, one.model, host, one.accuracy) for one in group),
    ]
    activations = {row["model"]: row["activation"] for row in rows}
    times = [
        {"model": one.model, "activation": activations[one.model], "row": row, **time_of(row)}
        for one in group
        for row in one.rows
    ]
    shapes = sorted({one["shape"] for one in times if one["shape"]}, key=sizes)
    return {
        "reference": reference,
        "activation": activations[reference],
        "host": hosts.get(host),
        "rows": rows,
        "times": [*own_times(summary, key, times), *times],
        "trained": any(row["epoch_words"] for row in rows),
        "device_memory": device == "cuda",
        "figures": [
            figure_of([one for one in times if one["shape"] == shape], shape, hosts.get(host))
            for shape in shapes
            if any(one["shape"] == shape and one["speedup"] for one in times)
        ],
    }


def own_accuracy(summary: Summary, key: GroupKey) -> ComparedAccuracy | None:
    """Return the accuracy of the reference's baseline, None where it was not evaluated."""
    reference, host, device = key
    model = summary.models.get(reference)
    baseline = at_place(model.baselines if model else {}, device, host)
    found = (one for one in summary.results if (one.model, one.host) == (reference, host))
    return next((one.accuracy for one in found if one.variant == baseline), None)


def model_row(
    summary: Summary, model: str, host: str, accuracy: ComparedAccuracy | None
) -> dict[str, Any]:
    """Return a row: activation, accuracy, and time and memory of the training on `host`."""
    known = summary.models.get(model)
    trainings = (one for one in summary.training if (one.model, one.host) == (model, host))
    trained = next((one for one in trainings if one.status == "ok"), None)
    memory = trained and (
        trained.peak_device_bytes if trained.device == "cuda" else trained.peak_rss_bytes
    )
    return {
        "model": model,
        "activation": known.activation if known and known.activation else model,
        "plain": False,
        "top1": percentage(accuracy.top1, accuracy.samples) if accuracy else None,
        "change": points(accuracy.delta, accuracy.samples) if accuracy else None,
        "interval": points_interval(accuracy.delta_low, accuracy.delta_high, accuracy.samples)
        if accuracy
        else None,
        "epoch_words": format_seconds(trained.epoch_s if trained else None),
        "memory_bytes": memory,
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


def own_times(
    summary: Summary, key: GroupKey, times: Iterable[Mapping[str, Any]]
) -> list[dict[str, Any]]:
    """Return the rows of the reference itself, at the shapes and with the engines of `times`."""
    model, host, _ = key
    results = {
        one.variant: one for one in summary.results if (one.model, one.host) == (model, host)
    }
    known = dict.fromkeys((one["variant"], one["shape"]) for one in times if one["shape"])
    found = []
    for variant, shape in known:
        row = row_at(results[variant], shape) if variant in results else None
        own = {"variant": variant, "shape": shape, "call_s": row and row.paired_s}
        rest = {"speedup": None, "noisy": False, "reason": "it is the reference"}
        found.append({"model": model, **own, **rest})
    return found


def figure_of(times: Sequence[Mapping[str, Any]], shape: Shape, host: str | None) -> dict[str, Any]:
    """Return the chart of the speed-ups at a shape with its description, fastest first."""
    rows = []
    for one in times:
        if one["speedup"]:
            parsed = parse(one["variant"])
            name = f"{one['activation']} {one['variant']}"
            parts = {"variant": name, "engine": parsed.engine, "precision": parsed.precision}
            rows.append({**parts, **speedup_mark(one["speedup"])})
    rows.sort(key=lambda row: -row["ratio"])
    title = join_title(shape_label(shape), host)
    description = describe_speedups(title, rows)
    extent = [row[end] for row in rows for end in ("low", "high")]
    return {
        "title": title,
        "description": description,
        "chart": speedup_chart(rows, extent=extent, description=description),
    }
