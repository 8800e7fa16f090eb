"""Chart of accuracy against latency."""

from collections.abc import Sequence
from typing import Any

import altair as alt

from tightrope.report.charts.parts import (
    clone,
    engine_colour,
    labels,
    log_axis,
    precision_shape,
    to_specification,
    tooltips,
    values,
)

LINEAR_SPAN = 12  # accuracy points; a wider range gets a symlog axis


def accuracy_latency_chart(
    points: Sequence[dict[str, Any]], *, budget_points: float | None, description: str
) -> dict[str, Any]:
    """Chart accuracy change (points) against latency (ms, logarithmic), as wide as the container.

    A point has variant, engine, precision, latency_ms, latency_low, latency_high, delta, delta_low,
    delta_high, front (its number on the Pareto front, or None), deploy (bool), and the tooltip
    texts latency and change; points come fastest first.
    """
    ends = ("latency_low", "latency_ms", "latency_high")
    x_axis = log_axis(points, ends, "latency_ms", title="latency, ms (logarithmic)")
    y_axis = accuracy_axis(points, budget_points)
    marks, position, colour = alt.Chart(), (x_axis, y_axis), engine_colour()
    front, deploy = (marks.transform_filter(f"datum.{name}") for name in ("front", "deploy"))
    bar = marks.mark_rule(opacity=0.75)
    numbers = alt.Chart(values(front_labels(points)))
    layers = [
        alt.Chart(values([{"delta": 0}])).mark_rule(style="zero").encode(y=y_axis),
        *budget_layers(budget_points, y_axis),
        front.mark_line(style="front", interpolate="step-after").encode(*position),
        bar.encode(x_axis, colour, y=clone(y_axis, "delta_low"), y2=alt.Y2("delta_high:Q")),
        bar.encode(y_axis, colour, x=clone(x_axis, "latency_low"), x2=alt.X2("latency_high:Q")),
        deploy.mark_point(style="ring", size=430, shape="circle").encode(*position),
        marks.mark_point(filled=True, size=110, opacity=1).encode(
            *position, colour, precision_shape(), tooltip=tooltips("latency", "change")
        ),
        *labels(numbers, "text", y_axis, align="left", x=x_axis, dx=10, dy=-13),
    ]
    title = "accuracy change, points"
    if y_axis["scale"]["type"] == "symlog":
        title += " (compressed beyond 1)"
    chart = alt.layer(*layers, data=values(points)).properties(
        title=title, width="container", height=270
    )
    return to_specification(chart, description)


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


def budget_layers(budget_points: float | None, y_axis: alt.Y) -> list[alt.Chart]:
    """Return the line below which the accuracy drop exceeds the budget, with its name."""
    if budget_points is None:
        return []
    line = alt.Chart(values([{"delta": -budget_points, "name": "accuracy budget"}]))
    name = labels(line, "name", y_axis, x=alt.XValue("width"), align="right", dy=11)
    return [line.mark_rule(style="budget").encode(y_axis), *name]


def accuracy_axis(points: Sequence[dict[str, Any]], budget_points: float | None) -> alt.Y:
    """Return the accuracy axis, compressed if a variant falls far, so that others stay apart."""
    changes = [
        0,
        *(point[name] for point in points for name in ("delta", "delta_low", "delta_high")),
    ]
    low, high = min(*changes, -(budget_points or 0)), max(changes)
    pad = 0.08 * max(high - low, 1)
    scale = alt.Scale(domain=[low - pad, high + pad], nice=False)
    axis = alt.Axis(tickCount=6, format="+~r", labelExpr="datum.value ? datum.label : '0'")
    if high - low > LINEAR_SPAN:
        scale = alt.Scale(type="symlog", constant=1, domain=[low * 1.2, high + 1], nice=False)
        ticks = [0, *(sign * size for size in (1, 3, 10, 30, 100) for sign in (1, -1))]
        axis.values, axis.labelOverlap = ticks, False
    return alt.Y("delta:Q", scale=scale, axis=axis, title=None)
