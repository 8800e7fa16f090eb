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
    colour = alt.Color("model:O", scale=alt.Scale(domain=list(models)), legend=None)
    marks, position = alt.Chart(), (x_axis, y_axis)
    front, recommended, others = (
        marks.transform_filter(rule)
        for rule in ("datum.front", "datum.recommended", "!datum.recommended")
    )
    tooltip = [alt.Tooltip("model:N"), *tooltips("latency", "change")]
    point = (*position, colour, precision_shape())
    layers = [
        alt.Chart(values([{"delta": 0}])).mark_rule(style="zero").encode(y=y_axis),
        *budget_layers(budget_points, y_axis),
        front.mark_line(style="front", interpolate="step-after").encode(*position),
        *link_layers(links, x_axis, y_axis),
        recommended.mark_rule(opacity=0.75).encode(
            x_axis, colour, y=clone(y_axis, "delta_low"), y2="delta_high:Q"
        ),
        recommended.mark_rule(opacity=0.75).encode(
            y_axis, colour, x=clone(x_axis, "latency_low"), x2="latency_high:Q"
        ),
        others.mark_point(filled=True, size=SMALL, opacity=0.6).encode(*point, tooltip=tooltip),
        recommended.mark_point(style="ring", size=430, shape="circle").encode(*position),
        recommended.mark_point(filled=True, size=LARGE, opacity=1).encode(*point, tooltip=tooltip),
        *labels(recommended, "model", y_axis, align="left", x=x_axis, dx=12, dy=-13),
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
    return [chart.encode(x_axis, y_axis, x2="latency_ms_child:Q", y2="delta_child:Q")]
