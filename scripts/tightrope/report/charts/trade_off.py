"""Chart of accuracy against latency."""

from collections.abc import Sequence
from functools import cache
from typing import Any

import altair as alt
from altair.utils.schemapi import debug_mode

from tightrope.report.charts.layouts import Slot, filled, slot
from tightrope.report.charts.parts import (
    clone,
    engine_colour,
    labels,
    log_axis_of,
    log_range,
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


def budget_layers(budget_points: float | None, y_axis: alt.Y) -> list[alt.Chart]:
    """Return the line below which the accuracy drop exceeds the budget, with its name."""
    if budget_points is None:
        return []
    return budget_lines([{"delta": -budget_points, "name": "accuracy budget"}], y_axis)


def budget_lines(rows: list[dict[str, Any]] | Slot, y_axis: alt.Y) -> list[alt.Chart]:
    """Return the line of the budget in these rows, with its name."""
    line = alt.Chart(values(rows))
    name = labels(line, "name", y_axis, x=alt.XValue("width"), align="right", dy=11)
    return [line.mark_rule(style="budget").encode(y_axis), *name]


def accuracy_axis(points: Sequence[dict[str, Any]], budget_points: float | None) -> alt.Y:
    """Return the accuracy axis, compressed if a variant falls far, so that others stay apart."""
    return accuracy_axis_of(*accuracy_range(points, budget_points))


def accuracy_range(
    points: Sequence[dict[str, Any]], budget_points: float | None
) -> tuple[bool, list[float]]:
    """Return whether the accuracy axis is compressed, and its ends."""
    changes = [
        0,
        *(point[name] for point in points for name in ("delta", "delta_low", "delta_high")),
    ]
    low, high = min(*changes, -(budget_points or 0)), max(changes)
    if high - low > LINEAR_SPAN:
        return True, [low * 1.2, high + 1]
    pad = 0.08 * max(high - low, 1)
    return False, [low - pad, high + pad]


def accuracy_axis_of(compressed: bool, ends: Any) -> alt.Y:
    """Return the accuracy axis with these ends."""
    axis = alt.Axis(tickCount=6, format="+~r", labelExpr="datum.value ? datum.label : '0'")
    scale = alt.Scale(domain=ends, nice=False)
    if compressed:
        scale = alt.Scale(type="symlog", constant=1, domain=ends, nice=False)
        ticks = [0, *(sign * size for size in (1, 3, 10, 30, 100) for sign in (1, -1))]
        axis.values, axis.labelOverlap = ticks, False
    return alt.Y("delta:Q", scale=scale, axis=axis, title=None)
