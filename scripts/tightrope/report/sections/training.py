"""Report section on measured trainings."""

import statistics
from collections.abc import Sequence
from operator import itemgetter
from typing import Any

from tightrope.report.charts import chart, interval, labels, layer, nominal, quantity, tooltips
from tightrope.report.style.numbers import is_number, percentage, significant
from tightrope.summary.training import Training

HEAD_ROOM = 0.03  # axis room per letter of a name, as a share of the slowest training's time
HEIGHT = 240  # pixels
LINE = 16  # pixels from one name to the next
NEAR = 0.25  # share of the longest training; names closer than this would overlap
Point = dict[str, Any]


def training_section(entries: Sequence[Training]) -> list[dict[str, Any]]:
    """Return tables of measured trainings, one per distinct workload, whose times compare."""
    groups: dict[Any, list[Training]] = {}
    for one in entries:
        setup = (one.host, one.device, one.threads, one.unit, tuple(one.seeds))
        if one.status == "ok":
            workload = (*setup, one.samples, one.held_out_samples, one.epochs)
            groups.setdefault(workload, []).append(one)
    return [table(group) for group in groups.values()]


def table(group: Sequence[Training]) -> dict[str, Any]:
    """Return one table and its `figure`; each plain training precedes those compared with it.

    Trainings disturbed by other load are in the table only.
    """
    families = list(dict.fromkeys(one.reference or one.model for one in group))
    entries = sorted(
        group,
        key=lambda one: (
            families.index(one.reference or one.model),
            one.reference not in (None, one.model),
        ),
    )
    timed = [entry for entry in entries if entry.samples_per_s]
    speeds = [entry.samples_per_s for entry in timed]
    return {
        "entries": entries,
        "figure": figure(timed) if timed else None,
        "largest": max((speed.mean for speed in speeds if speed), default=1.0),
        "device_memory": all(is_number(entry.peak_device_bytes) for entry in entries),
        "first": entries[0],
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


def training_chart(points: Sequence[Point], *, description: str) -> dict[str, Any]:
    """Chart accuracy (percent) after each epoch over the elapsed seconds, a line per model.

    A point has model, epoch, seconds, accuracy, low and high (over the seeds), last (bool: the
    model is named at this point), and the tooltip text `told`. As wide as its container.
    """
    slowest = max(point["seconds"] for point in points)
    letters = max(len(point["model"]) for point in points)
    scale = {"domain": [0, slowest * (1 + HEAD_ROOM * min(letters, 30))], "nice": False}
    x_axis = quantity("seconds", scale=scale, axis={"grid": False}, title="time of training, s")
    ends = [point[end] for point in points for end in ("low", "high")]
    room = max(2.0, 0.1 * (max(ends) - min(ends)))
    limits = [max(0.0, min(ends) - room), min(100.0, max(ends) + room)]
    y_axis = quantity("accuracy", scale={"domain": limits, "nice": False}, title=None)
    position = {"x": x_axis, "y": y_axis}
    mark = {"style": "marked", "filled": True, "size": 70, "opacity": 1}
    names = place_names(points, line=LINE / HEIGHT * (limits[1] - limits[0]))
    told = tooltips("model", "epoch", told="accuracy, %")
    span = interval(y_axis, "low", "high", "y", x=x_axis)
    named = {"x": x_axis, "y": {**y_axis, "field": "name_at"}}
    layers = [
        layer("line", {"style": "front"}, **position, detail=nominal("model")),
        layer("rule", {"style": "zero", "opacity": 0.6}, **span),
        layer("point", mark, **position, tooltip=told),
        *labels("model", {"align": "left", "dx": 8}, rows=names, **named),
    ]
    return chart(layers, points, description, title="accuracy, %", height=HEIGHT)


def place_names(points: Sequence[Point], *, line: float) -> list[Point]:
    """Return the named points; `name_at` is the accuracy at which the name is drawn.

    Names of trainings that end at about the same time are `line` (percent) apart.
    """
    near = NEAR * max(point["seconds"] for point in points)
    placed: list[Point] = []
    for point in sorted((other for other in points if other["last"]), key=itemgetter("accuracy")):
        neighbours = [other for other in placed if abs(other["seconds"] - point["seconds"]) < near]
        name_at = max([point["accuracy"], *(other["name_at"] + line for other in neighbours)])
        placed.append({**point, "name_at": name_at})
    return placed
