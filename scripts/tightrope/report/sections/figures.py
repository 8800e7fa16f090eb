"""Figures of accuracy against latency: a chart with description and table per shape."""

from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import Any

import altair as alt
from altair.utils.schemapi import debug_mode

from tightrope.report.charts import (
    accuracy_axis_of,
    accuracy_range,
    budget_lines,
    clone,
    engine_colour,
    filled,
    labels,
    log_axis_of,
    log_range,
    precision_shape,
    slot,
    to_specification,
    tooltips,
    values,
)
from tightrope.report.style.numbers import (
    is_number,
    is_positive,
    milliseconds,
    points,
    points_interval,
    shape_label,
    shape_of,
)

Record = Mapping[str, Any]


def shapes_in(results: Iterable[Record]) -> list[tuple[tuple[str, int], ...]]:
    """Return every measured shape, smallest first."""
    shapes = {shape_of(row) for result in results for row in result.get("latency") or ()}
    return sorted(shapes, key=lambda shape: [size for _, size in shape])


def row_at(result: Record, shape: tuple[tuple[str, int], ...]) -> Record | None:
    """Return the latency row of a shape, or None."""
    return next((row for row in result.get("latency") or () if shape_of(row) == shape), None)


def trade_offs(
    results: Sequence[Record],
    baselines: Mapping[str, str],
    deploy: Mapping[Any, set[str]],
    equals: Mapping[Any, set[str]],
    budget_points: float | None,
    *,
    host: str | None = None,
) -> list[dict[str, Any]]:
    """Return a figure per shape: accuracy against latency of one model's results on one host.

    `deploy` holds the recommended variants by shape, `equals` these and the variants equal to one
    of them in speed; `host` is named in the titles. A figure has title, description, chart, points
    (fastest first, the Pareto front numbered) and unplaced (variants without a time).
    """
    figures = (
        trade_off(
            join_title(shape_label(shape), host),
            [(result, row_at(result, shape)) for result in results],
            baselines,
            (deploy.get(shape, set()), equals.get(shape, set())),
            budget_points,
        )
        for shape in shapes_in(results)
    )
    return [figure for figure in figures if figure]


def trade_off(
    title: str,
    rows: Sequence[tuple[Record, Record | None]],
    baselines: Mapping[str, str],
    chosen: tuple[set[str], set[str]],
    budget_points: float | None,
) -> dict[str, Any] | None:
    """Return the figure of one shape, None if no variant has a place in it.

    `rows` are the results with their rows at the shape; `chosen` are the recommended variants, and
    these with the variants equal to one of them.
    """
    evaluated = [(result, row) for result, row in rows if row and result.get("accuracy")]
    placed = [point for pair in evaluated if (point := trade_off_point(*pair, baselines))]
    if not placed:
        return None
    deploy, equals = chosen
    number_front(placed, equals)
    names = {point["variant"] for point in placed}
    for point in placed:
        point["deploy"] = point["variant"] in deploy
    description = describe_trade_off(title, placed)
    marks = [without_records(point) for point in placed]
    return {
        "title": title,
        "description": description,
        "points": placed,
        "unplaced": [
            result["variant"] for result, _ in evaluated if result["variant"] not in names
        ],
        "chart": accuracy_latency_chart(
            marks, budget_points=budget_points, description=description
        ),
    }


def trade_off_point(
    result: Record, row: Record, baselines: Mapping[str, str]
) -> dict[str, Any] | None:
    """Return the point of a variant at a shape, None without a time or an accuracy change.

    Its time is the baseline's over its speed-up, so that the chart and the decision agree.
    """
    accuracy, speedup = result["accuracy"], row.get("speedup") or {}
    delta = 0.0 if result["variant"] in baselines.values() else accuracy.get("delta")
    if not is_number(delta) or not is_positive(row.get("paired_s")):
        return None
    latency = row["paired_s"] * 1e3
    low, middle, high = (speedup.get(end) for end in ("low", "ratio", "high"))
    has_interval = all(is_positive(end) for end in (low, middle, high))
    ends = [accuracy.get(end) for end in ("delta_low", "delta_high")]
    delta_low, delta_high = (end if is_number(end) else delta for end in ends)
    return {
        "variant": result["variant"],
        "engine": result.get("engine"),
        "precision": result.get("precision"),
        "latency_ms": latency,
        "latency_low": latency * middle / high if has_interval else latency,
        "latency_high": latency * middle / low if has_interval else latency,
        "delta": 100 * delta,
        "delta_low": 100 * delta_low,
        "delta_high": 100 * delta_high,
        "latency": f"{milliseconds(row['paired_s'])} ms",
        "change": f"{points(delta, accuracy.get('samples'))} points "
        f"({points_interval(accuracy) or 'no interval'})",
        "result": result,
        "row": row,
    }


def number_front(placed: list[dict[str, Any]], equal: set[str]) -> None:
    """Sort the points by latency and number the Pareto front, fastest first.

    Variants that are `equal` in speed do not dominate each other, and a variant with undecided
    accuracy dominates none.
    """
    placed.sort(key=lambda point: (point["latency_ms"], -point["delta"]))
    # of the points so far the one with the highest accuracy, of all and of those not in `equal`
    best_of_all: Record | None = None
    best_of_others: Record | None = None
    number = 0
    for point in placed:
        rival = best_of_others if point["variant"] in equal else best_of_all
        on_front = rival is None or not dominates(rival, point)
        number += on_front
        point["front"] = number if on_front else None
        if point["result"]["accuracy"].get("verdict") != "undecided":
            best_of_all = better(point, best_of_all)
            if point["variant"] not in equal:
                best_of_others = better(point, best_of_others)


def dominates(first: Record, second: Record) -> bool:
    """Return whether a point that is no slower than the second one is better, or as good faster."""
    if first["delta"] == second["delta"]:
        return bool(first["latency_ms"] < second["latency_ms"])
    return bool(first["delta"] > second["delta"])


def better(point: Record, best: Record | None) -> Record:
    """Return the more accurate of a point and the best of those before it, on a tie the latter."""
    return point if best is None or point["delta"] > best["delta"] else best


def describe_trade_off(title: str, placed: Sequence[Record]) -> str:
    """Describe the chart in words."""
    front = [
        f"{point['variant']} ({point['latency']}, {point['change']})"
        for point in placed
        if point["front"]
    ]
    return (
        f"Accuracy change against latency of {len(placed)} variants at {title}. "
        f"On the Pareto front, fastest first: {'; '.join(front)}."
    )


def join_title(*parts: str | None) -> str:
    """Join the non-empty parts with dots."""
    return " \N{MIDDLE DOT} ".join(filter(None, parts))


def without_records(entry: Record) -> dict[str, Any]:
    """Return the fields that the chart draws."""
    return {key: value for key, value in entry.items() if key not in ("result", "row")}


def accuracy_latency_chart(
    points: Sequence[dict[str, Any]], *, budget_points: float | None, description: str
) -> dict[str, Any]:
    """Chart accuracy change (points) against latency (ms, logarithmic), as wide as the container.

    A point has variant, engine, precision, latency_ms, latency_low, latency_high, delta, delta_low,
    delta_high, front (its number on the Pareto front, or None), deploy (bool), and the tooltip
    texts latency and change; points come fastest first.
    """
    compressed, domain = accuracy_range(points, budget_points)
    latencies = log_range(points, ("latency_low", "latency_ms", "latency_high"))
    specification: dict[str, Any] = filled(
        layout(compressed, budget_points is not None),
        {
            "latencies": latencies[0],
            "ticks": latencies[1],
            "changes": domain,
            "points": points,
            "numbers": front_labels(points),
            "budget": [{"delta": -(budget_points or 0), "name": "accuracy budget"}],
            "description": description,
        },
    )
    return specification


@cache
@debug_mode(False)
def layout(compressed: bool, budget: bool) -> dict[str, Any]:
    """Return the chart with slots; `compressed` is its accuracy axis, `budget` whether it has one.

    Slots are what altair would refuse before they are filled.
    """
    x_axis = log_axis_of(
        slot("latencies"), slot("ticks"), "latency_ms", title="latency, ms (logarithmic)"
    )
    y_axis = accuracy_axis_of(compressed, slot("changes"))
    marks, position, colour = alt.Chart(), (x_axis, y_axis), engine_colour()
    front, deploy = (marks.transform_filter(f"datum.{name}") for name in ("front", "deploy"))
    bar = marks.mark_rule(opacity=0.75)
    numbers = alt.Chart(values(slot("numbers")))
    layers = [
        alt.Chart(values([{"delta": 0}])).mark_rule(style="zero").encode(y=y_axis),
        *(budget_lines(slot("budget"), y_axis) if budget else ()),
        front.mark_line(style="front", interpolate="step-after").encode(*position),
        bar.encode(x_axis, colour, y=clone(y_axis, "delta_low"), y2=alt.Y2("delta_high:Q")),
        bar.encode(y_axis, colour, x=clone(x_axis, "latency_low"), x2=alt.X2("latency_high:Q")),
        deploy.mark_point(style="ring", size=430, shape="circle").encode(*position),
        marks.mark_point(filled=True, size=110, opacity=1).encode(
            *position, colour, precision_shape(), tooltip=tooltips("latency", "change")
        ),
        *labels(numbers, "text", y_axis, align="left", x=x_axis, dx=10, dy=-13),
    ]
    title = "accuracy change, points" + (" (compressed beyond 1)" if compressed else "")
    chart = alt.layer(*layers, data=values(slot("points"))).properties(
        title=title, width="container", height=270
    )
    return to_specification(chart, slot("description"))


def front_labels(points: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the number labels of the Pareto front; neighbours too close to read share one."""
    latencies = [point["latency_ms"] for point in points]
    near = (max(latencies) / min(latencies)) ** 0.06
    groups: list[list[dict[str, Any]]] = []
    for point in (point for point in points if point["front"]):
        if groups and point["latency_ms"] <= groups[-1][-1]["latency_ms"] * near:
            groups[-1].append(point)
        else:
            groups.append([point])
    return [
        {
            "latency_ms": group[-1]["latency_ms"],
            "delta": group[-1]["delta"],
            "text": ", ".join(str(point["front"]) for point in group),
        }
        for group in groups
    ]
