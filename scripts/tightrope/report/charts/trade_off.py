"""Chart of accuracy against latency."""

from collections.abc import Sequence
from typing import Any

import altair as alt

from tightrope.report.charts.parts import (
    clone,
    engine_colour,
    finished,
    horizontal,
    labels,
    precision_shape,
    tips,
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
    across = horizontal(points, ends, "latency_ms", title="latency, ms (logarithmic)")
    up = vertical(points, budget_points)
    marks, here, colour = alt.Chart(), (across, up), engine_colour()
    front, deploy = (marks.transform_filter(f"datum.{name}") for name in ("front", "deploy"))
    bar = marks.mark_rule(opacity=0.75)
    numbers = alt.Chart(values(front_labels(points)))
    layers = [
        alt.Chart(values([{"delta": 0}])).mark_rule(style="zero").encode(y=up),
        *budget_layers(budget_points, up),
        front.mark_line(style="front", interpolate="step-after").encode(*here),
        bar.encode(across, colour, y=clone(up, "delta_low"), y2="delta_high:Q"),
        bar.encode(up, colour, x=clone(across, "latency_low"), x2="latency_high:Q"),
        deploy.mark_point(style="ring", size=430, shape="circle").encode(*here),
        marks.mark_point(filled=True, size=110, opacity=1).encode(
            *here, colour, precision_shape(), tooltip=tips("latency", "change")
        ),
        *labels(numbers, "text", up, align="left", x=across, dx=10, dy=-13),
    ]
    title = "accuracy change, points"
    if up["scale"]["type"] == "symlog":
        title += " (compressed beyond 1)"
    chart = alt.layer(*layers, data=values(points)).properties(
        title=title, width="container", height=270
    )
    return finished(chart, description)


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


def budget_layers(budget_points: float | None, up: alt.Y) -> list[alt.Chart]:
    """Return the line below which the accuracy drop exceeds the budget, with its name."""
    if budget_points is None:
        return []
    line = alt.Chart(values([{"delta": -budget_points, "name": "accuracy budget"}]))
    name = labels(line, "name", up, x=alt.value("width"), align="right", dy=11)
    return [line.mark_rule(style="budget").encode(up), *name]


def vertical(points: Sequence[dict[str, Any]], budget_points: float | None) -> alt.Y:
    """Return the accuracy axis, compressed if a variant falls far, so that others stay apart."""
    seen = [0, *(point[name] for point in points for name in ("delta", "delta_low", "delta_high"))]
    low, high = min(*seen, -(budget_points or 0)), max(seen)
    pad = 0.08 * max(high - low, 1)
    scale = alt.Scale(domain=[low - pad, high + pad], nice=False)
    axis = alt.Axis(tickCount=6, format="+~r", labelExpr="datum.value ? datum.label : '0'")
    if high - low > LINEAR_SPAN:
        scale = alt.Scale(type="symlog", constant=1, domain=[low * 1.2, high + 1], nice=False)
        ticks = [0, *(sign * size for size in (1, 3, 10, 30, 100) for sign in (1, -1))]
        axis.values, axis.labelOverlap = ticks, False
    return alt.Y("delta:Q", scale=scale, axis=axis, title=None)
