"""Report section on measured trainings."""

import statistics
from collections.abc import Sequence
from operator import attrgetter
from typing import Any

from tightrope.report.charts import training_chart
from tightrope.report.style.numbers import percentage, significant
from tightrope.report.tables import grouped
from tightrope.summary.pairs import Training

# with the seeds, what trainings have in common whose times compare
SETUP = attrgetter("host", "device", "threads", "unit", "samples", "held_out_samples", "epochs")


def training_section(entries: Sequence[Training]) -> list[dict[str, Any]]:
    """Return tables of measured trainings, one per distinct workload, whose times compare."""
    groups = grouped(((*SETUP(one), *one.seeds), one) for one in entries if one.status == "ok")
    return [table(group) for group in groups.values()]


def table(group: Sequence[Training]) -> dict[str, Any]:
    """Return one table and its `figure`; each plain training precedes those compared with it.

    Trainings disturbed by other load are in the table only.
    """
    families = grouped((one.reference or one.model, one) for one in group)
    for family in families.values():
        family.sort(key=lambda one: one.reference not in (None, one.model))
    entries: list[Training] = [one for family in families.values() for one in family]
    timed = [entry for entry in entries if entry.samples_per_s]
    return {
        "entries": entries,
        "figure": figure(timed) if timed else None,
        "largest": max((one.samples_per_s.mean for one in timed if one.samples_per_s), default=1.0),
        "device_memory": all(one.peak_device_bytes is not None for one in entries),
    }


def figure(entries: Sequence[Training]) -> dict[str, Any]:
    """Return the chart of accuracy over time, and its `points`."""
    chart_points = [point for entry in entries for point in epoch_points(entry)]
    last = [point for point in chart_points if point["last"]]
    description = "Accuracy over the time of the training. After the last epoch: " + "; ".join(
        f"{point['model']} {point['told']} % after {significant(point['seconds'])} s"
        for point in last
    )
    return {"points": chart_points, "chart": training_chart(chart_points, description=description)}


def epoch_points(entry: Training) -> list[dict[str, Any]]:
    """Return the chart points of a model: mean, lowest and highest accuracy over the seeds."""
    found, runs = [], entry.runs or []
    for number in range(1, entry.epochs + 1):
        shares = [run.accuracy[number - 1] for run in runs]
        mean = statistics.fmean(shares)
        times = {"seconds": statistics.fmean(sum(run.seconds[:number]) for run in runs)}
        ends = {"accuracy": 100 * mean, "low": 100 * min(shares), "high": 100 * max(shares)}
        told = {"told": percentage(mean, entry.held_out_samples), "last": number == entry.epochs}
        found.append({"model": entry.model, "epoch": number, **times, **ends, **told})
    return found
