"""Report section on measured trainings."""

import statistics
from collections.abc import Sequence
from operator import itemgetter
from typing import Any

from msgspec.structs import asdict

from tightrope.report.charts import chart, interval, labels, layer, nominal, quantity, tooltips
from tightrope.report.style.numbers import is_number, percentage, points, significant
from tightrope.summary.pairs import Spread, Training

PLUS_MINUS = "\N{PLUS-MINUS SIGN}"
HEAD_ROOM = 0.03  # axis room per letter of a name, as a share of the slowest training's time
HEIGHT = 240  # pixels
LINE = 16  # pixels from one name to the next
NEAR = 0.25  # share of the longest training; names closer than this would overlap
Point = dict[str, Any]


def training_section(entries: Sequence[Training]) -> dict[str, Any] | None:
    """Return tables of measured trainings, one per distinct workload; None without any."""
    if not entries:
        return None
    groups: dict[Any, list[Training]] = {}
    for entry in entries:
        if entry.status == "ok":
            groups.setdefault(workload_of(entry), []).append(entry)
    return {"tables": [table(group) for group in groups.values()]}


def workload_of(entry: Training) -> tuple[Any, ...]:
    """Return the key that trainings of a table must share for comparable times."""
    setup = (entry.host, entry.device, entry.threads, entry.unit, tuple(entry.seeds))
    return (*setup, entry.samples, entry.held_out_samples, entry.epochs)


def table(group: Sequence[Training]) -> dict[str, Any]:
    """Return one table and its `figures`; each plain training precedes those compared with it.

    Trainings disturbed by other load are in the table only.
    """
    families = list(dict.fromkeys(family_of(entry) for entry in group))
    entries = sorted(
        group, key=lambda entry: (families.index(family_of(entry)), entry.model != family_of(entry))
    )
    first, timed = entries[0], [entry for entry in entries if entry.samples_per_s]
    speeds = [entry.samples_per_s for entry in timed]
    return {
        "entries": [{**asdict(entry), **format_means(entry)} for entry in entries],
        "figures": [figure(timed)] if timed else [],
        "largest": max((speed.mean for speed in speeds if speed), default=1.0),
        "device_memory": all(is_number(entry.peak_device_bytes) for entry in entries),
        "first": first,
    }


def family_of(entry: Training) -> str:
    """Return the model whose training an entry is compared with, or its own."""
    return entry.reference or entry.model


def format_seconds(seconds: Spread | None) -> str | None:
    """Format seconds with their spread."""
    return plus_minus(seconds, significant, lambda deviation: significant(deviation, 2))


def format_means(entry: Training) -> dict[str, Any]:
    """Format the means of an entry with their spreads."""
    samples = entry.held_out_samples
    return {
        "plain": entry.model == entry.reference,
        "epoch_words": format_seconds(entry.epoch_s),
        "accuracy_words": plus_minus(entry.accuracy, lambda share: percentage(share, samples)),
        "change_words": plus_minus(
            entry.accuracy_change,
            lambda share: points(share, samples),
            lambda share: percentage(share, samples),
        ),
    }


def plus_minus(spread: Spread | None, format_mean: Any, format_spread: Any = None) -> str | None:
    """Format "78.3 ± 0.4": mean and sample standard deviation; None without a mean."""
    if not spread:
        return None
    mean, deviation = format_mean(spread.mean), (format_spread or format_mean)(spread.spread)
    return f"{mean} {PLUS_MINUS} {deviation}" if deviation else mean


def figure(entries: Sequence[Training]) -> dict[str, Any]:
    """Return the chart of accuracy over time with its description and `points`."""
    chart_points = [point for entry in entries for point in epoch_points(entry)]
    last = [point for point in chart_points if point["last"]]
    description = "Accuracy over the time of the training. After the last epoch: " + "; ".join(
        f"{point['model']} {point['told']} % after {significant(point['seconds'])} s"
        for point in last
    )
    return {
        "description": description,
        "points": chart_points,
        "chart": training_chart(chart_points, description=description),
    }


def epoch_points(entry: Training) -> list[dict[str, Any]]:
    """Return the chart points of a model: mean, lowest and highest accuracy over the seeds."""
    runs, count = entry.runs or [], entry.epochs
    chart_points = []
    for number in range(count):
        shares = [run.accuracy[number] for run in runs]
        mean = statistics.fmean(shares)
        chart_points.append(
            {
                "model": entry.model,
                "epoch": number + 1,
                "seconds": statistics.fmean(sum(run.seconds[: number + 1]) for run in runs),
                "accuracy": 100 * mean,
                "low": 100 * min(shares),
                "high": 100 * max(shares),
                "told": percentage(mean, entry.held_out_samples),
                "last": number + 1 == count,
            }
        )
    return chart_points


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
