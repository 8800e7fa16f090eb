"""Chart of a family: accuracy against latency of all variants, each model with its parent."""

from collections.abc import Sequence
from typing import Any

import altair as alt

from tightrope.report.charts.parts import (
    clone,
    labels,
    log_axis,
    precision_shape,
    to_specification,
    tooltips,
    values,
)
from tightrope.report.charts.trade_off import accuracy_axis, budget_layers

SMALL, LARGE = 55, 130  # area of a mark, of a recommended variant the larger one


def family_chart(
    points: Sequence[dict[str, Any]],
    links: Sequence[dict[str, Any]],
    models: Sequence[str],
    *,
    budget_points: float | None,
    description: str,
) -> dict[str, Any]:
    """Chart accuracy change (points) against latency (ms, logarithmic), as wide as its container.

    A point has model, variant, precision, latency_ms, latency_low, latency_high, delta, delta_low,
    delta_high, front, recommended (bool), and the tooltip texts latency and change. A link has the
    latency_ms and delta of a parent's recommended variant, and those of its child's with the suffix
    `_child`. Colour is the model, in the order of `models`.
    """
    ends = ("latency_low", "latency_ms", "latency_high")
    x_axis = log_axis(points, ends, "latency_ms", title="latency, ms (logarithmic)")
    y_axis = accuracy_axis(points, budget_points)
    layers = [
        alt.Chart(values([{"delta": 0}])).mark_rule(style="zero").encode(y=y_axis),
        *budget_layers(budget_points, y_axis),
        *link_layers(links, x_axis, y_axis),
        *point_layers(x_axis, y_axis, models),
    ]
    title = "accuracy change from the root's baseline, points"
    if y_axis["scale"]["type"] == "symlog":
        title += " (compressed beyond 1)"
    chart = alt.layer(*layers, data=values(points)).properties(
        title=title, width="container", height=300
    )
    return to_specification(chart, description)


def link_layers(links: Sequence[dict[str, Any]], x_axis: alt.X, y_axis: alt.Y) -> list[alt.Chart]:
    """Return the lines from parents to children, none without links."""
    if not links:
        return []
    chart = alt.Chart(values(links)).mark_rule(style="edge")
    return [
        chart.encode(x_axis, y_axis, x2=alt.X2("latency_ms_child:Q"), y2=alt.Y2("delta_child:Q"))
    ]


def point_layers(x_axis: alt.X, y_axis: alt.Y, models: Sequence[str]) -> list[alt.Chart]:
    """Return the Pareto front, the marks of all variants, and the names of recommended ones."""
    colour = alt.Color("model:O", scale=alt.Scale(domain=list(models)), legend=None)
    position = (x_axis, y_axis)
    front, recommended, others = (
        alt.Chart().transform_filter(rule)
        for rule in ("datum.front", "datum.recommended", "!datum.recommended")
    )
    tooltip = [alt.Tooltip("model:N"), *tooltips("latency", "change")]
    bar = recommended.mark_rule(opacity=0.75)
    small = others.mark_point(filled=True, size=SMALL, opacity=0.6)
    large = recommended.mark_point(filled=True, size=LARGE, opacity=1)
    return [
        front.mark_line(style="front", interpolate="step-after").encode(*position),
        bar.encode(x_axis, colour, y=clone(y_axis, "delta_low"), y2=alt.Y2("delta_high:Q")),
        bar.encode(y_axis, colour, x=clone(x_axis, "latency_low"), x2=alt.X2("latency_high:Q")),
        small.encode(*position, colour, precision_shape(), tooltip=tooltip),
        recommended.mark_point(style="ring", size=430, shape="circle").encode(*position),
        large.encode(*position, colour, precision_shape(), tooltip=tooltip),
        *labels(recommended, "model", y_axis, align="left", x=x_axis, dx=12, dy=-13),
    ]
