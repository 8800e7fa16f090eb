"""Report section on measured trainings."""

import statistics
from collections.abc import Sequence
from typing import Any

from tightrope.report.charts.training import training_chart
from tightrope.report.style.numbers import is_number, percentage, points, significant
from tightrope.summary.training import Spread, Training

PLUS_MINUS = "\N{PLUS-MINUS SIGN}"


def training_section(entries: Sequence[Training]) -> dict[str, Any] | None:
    """Return tables of measured trainings, one per distinct workload; None without any.

    `largest` is the full scale of a table's bars, `device_memory` whether its memory is GPU memory;
    `failed` are the entries without a result.
    """
    if not entries:
        return None
    measured = [entry for entry in entries if entry.get("status") == "ok"]
    groups: dict[Any, list[Training]] = {}
    for entry in measured:
        groups.setdefault(workload_of(entry), []).append(entry)
    return {
        "tables": [table(group) for group in groups.values()],
        "failed": [{**entry, "variant": "training"} for entry in entries if entry not in measured],
    }


def workload_of(entry: Training) -> tuple[Any, ...]:
    """Return the key that trainings of a table must share for comparable times."""
    setup = (entry.get(name) for name in ("host", "device", "threads", "unit"))
    seeds = tuple(entry.get("seeds") or ())
    return (*setup, entry.get("samples"), entry.get("held_out_samples"), entry.get("epochs"), seeds)


def table(group: Sequence[Training]) -> dict[str, Any]:
    """Return one table and its `figures`; each plain training precedes those compared with it.

    Trainings disturbed by other load are in the table only.
    """
    families = list(dict.fromkeys(family_of(entry) for entry in group))
    entries = sorted(
        group,
        key=lambda entry: (families.index(family_of(entry)), entry["model"] != family_of(entry)),
    )
    first, timed = entries[0], [entry for entry in entries if entry["samples_per_s"]]
    speeds = [entry["samples_per_s"] for entry in timed]
    return {
        "entries": [{**entry, **format_means(entry)} for entry in entries],
        "figures": [figure(timed)] if timed else [],
        "largest": max((speed["mean"] for speed in speeds if speed), default=1.0),
        "device_memory": all(is_number(entry.get("peak_device_bytes")) for entry in entries),
        **{name: first.get(name) for name in ("unit", "samples", "held_out_samples", "epochs")},
        **{name: first.get(name) for name in ("seeds", "threads", "device", "host")},
    }


def family_of(entry: Training) -> str:
    """Return the model whose training an entry is compared with, or its own."""
    return entry.get("reference") or entry["model"]


def format_seconds(seconds: Spread | None) -> str | None:
    """Format seconds with their spread."""
    return plus_minus(seconds, significant, lambda deviation: significant(deviation, 2))


def format_means(entry: Training) -> dict[str, Any]:
    """Format the means of an entry with their spreads."""
    samples = entry.get("held_out_samples")
    return {
        "plain": entry["model"] == entry.get("reference"),
        "epoch_words": format_seconds(entry.get("epoch_s")),
        "accuracy_words": plus_minus(
            entry.get("accuracy"), lambda share: percentage(share, samples)
        ),
        "change_words": plus_minus(
            entry.get("accuracy_change"),
            lambda share: points(share, samples),
            lambda share: percentage(share, samples),
        ),
    }


def plus_minus(spread: Spread | None, format_mean: Any, format_spread: Any = None) -> str | None:
    """Format "78.3 ± 0.4": mean and sample standard deviation; None without a mean."""
    if not spread:
        return None
    mean, deviation = format_mean(spread["mean"]), (format_spread or format_mean)(spread["spread"])
    return f"{mean} {PLUS_MINUS} {deviation}" if deviation else mean


def figure(entries: Sequence[Training]) -> dict[str, Any]:
    """Return the chart of accuracy over time with its description and `points`."""
    chart_points = [point for entry in entries for point in epoch_points(entry)]
    last = [point for point in chart_points if point["last"]]
    description = "Accuracy over the time of the training. After the last epoch: " + "; ".join(
        f"{point['model']} {point['told']} % after {significant(point['seconds'])} s"
        for point in last
    )
    chart = training_chart(chart_points, description=description)
    return {"description": description, "points": chart_points, "chart": chart}


def epoch_points(entry: Training) -> list[dict[str, Any]]:
    """Return the chart points of a model: mean, lowest and highest accuracy over the seeds."""
    runs, count = entry["runs"] or [], entry["epochs"]
    chart_points = []
    for number in range(count):
        shares = [run["accuracy"][number] for run in runs]
        mean = statistics.fmean(shares)
        chart_points.append(
            {
                "model": entry["model"],
                "epoch": number + 1,
                "seconds": statistics.fmean(sum(run["seconds"][: number + 1]) for run in runs),
                "accuracy": 100 * mean,
                "low": 100 * min(shares),
                "high": 100 * max(shares),
                "told": percentage(mean, entry.get("held_out_samples")),
                "last": number + 1 == count,
            }
        )
    return chart_points
