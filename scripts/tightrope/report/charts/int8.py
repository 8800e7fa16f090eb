"""Charts of INT8 as Vega-Lite specifications: by calibration, and by operator.

They name no colour: methods are positions in the palette of `palette.chart_config`.
"""

from collections.abc import Sequence
from functools import cache
from typing import Any

import altair as alt
from altair.utils.schemapi import debug_mode

from tightrope.report.charts.layouts import filled, slot
from tightrope.report.charts.parts import clone, labels, log_axis, to_specification, values
from tightrope.report.charts.trade_off import accuracy_axis_of, accuracy_range, budget_lines
from tightrope.report.style.palette import METHOD_COLOURS

EXTENT = 34  # pixels left of both panels, so that their x axes align
SPREAD = 0.025  # offset between series at the same count, as a share of the width
ROW_HEIGHT = 24  # pixels for the name and the bar below it
LEAST = 1e-6  # share of the highest bar below which a bar has no length
TOOLTIP_TITLES = {"change": "accuracy change", "agreed": "agreement with fp32"}
Point = dict[str, Any]


def accuracy_over_samples(
    points: Sequence[Point],
    *,
    extent: Sequence[Point],
    budget_points: float | None,
    description: str,
) -> dict[str, Any]:
    """Chart accuracy change (points) with its interval over calibration samples, page-wide.

    A point has variant, method, precision, mixed (bool: drawn hollow), samples, delta, delta_low,
    delta_high, agreement (percent, or None), and the tooltip texts change and agreed. The axes also
    cover the points of `extent`.
    """
    compressed, changes = accuracy_range(extent, budget_points)
    specification: dict[str, Any] = filled(
        accuracy_layout(compressed, budget_points is not None),
        {
            **counts_of(extent),
            "changes": changes,
            "points": spread(points, extent),
            "budget": [{"delta": -(budget_points or 0), "name": "accuracy budget"}],
            "description": description,
        },
    )
    return specification


@cache
@debug_mode(False)
def accuracy_layout(compressed: bool, budget: bool) -> dict[str, Any]:
    """Return the panel of the accuracy with slots; see `trade_off.layout`."""
    x_axis, y_axis = samples_axis(), accuracy_axis_of(compressed, slot("changes"))
    x_axis["axis"].labels, x_axis["title"] = False, None
    bar = alt.Chart().mark_rule(strokeWidth=1.5, opacity=0.75)
    layers = [
        alt.Chart(values([{"delta": 0}])).mark_rule(style="zero").encode(y=y_axis),
        *(budget_lines(slot("budget"), y_axis)[:1] if budget else ()),
        bar.encode(
            x_axis, method_colour(), y=clone(y_axis, "delta_low"), y2=alt.Y2("delta_high:Q")
        ),
        *series(x_axis, y_axis, "change"),
    ]
    return panel(layers, y_axis, title="accuracy change, points", height=210)


def agreement_over_samples(
    points: Sequence[Point], *, extent: Sequence[Point], description: str
) -> dict[str, Any]:
    """Chart the share of predictions equal to those in fp32 (percent), same points and x axis."""
    rows = [
        {**point, "less": point["agreement"] - 100}
        for point in spread(points, extent)
        if agrees(point)
    ]
    ends = ("delta", "delta_low", "delta_high")
    differences = [point["agreement"] - 100 for point in extent if agrees(point)]
    changes = [dict.fromkeys(ends, value) for value in (*differences, -1)]
    compressed, (low, _) = accuracy_range(changes, None)
    specification: dict[str, Any] = filled(
        agreement_layout(compressed),
        {
            **counts_of(extent),
            # room for a mark at 100, but not for another label
            "changes": [low, min(0.4, -0.05 * low)],
            "points": rows,
            "description": description,
        },
    )
    return specification


@cache
@debug_mode(False)
def agreement_layout(compressed: bool) -> dict[str, Any]:
    """Return the panel of the agreement with slots; see `trade_off.layout`."""
    y_axis = clone(accuracy_axis_of(compressed, slot("changes")), "less")
    y_axis["axis"].labelExpr = "format(datum.value + 100, '~r')"
    layers = series(samples_axis(), y_axis, "agreed")
    return panel(layers, y_axis, title="agreement with fp32, %", height=130)


def agrees(point: Point) -> bool:
    """Return whether the agreement of a point with fp32 is known."""
    return point["agreement"] is not None


def panel(layers: list[alt.Chart], y_axis: alt.Y, *, title: str, height: int) -> dict[str, Any]:
    """Return one of the stacked panels."""
    y_axis["axis"].minExtent = y_axis["axis"].maxExtent = EXTENT
    if y_axis["scale"]["type"] == "symlog":
        title += " (compressed)"
    chart = alt.layer(*layers, data=values(slot("points")))
    return to_specification(
        chart.properties(title=title, width="container", height=height), slot("description")
    )


def series(x_axis: alt.X, y_axis: alt.Y, field: str) -> list[alt.Chart]:
    """Return a mark per point, hollow for mixed precisions, and a line through each series."""
    titles = {"variant": "variant", "samples": "samples", field: TOOLTIP_TITLES[field]}
    tooltip = [alt.Tooltip(f"{name}:N", title=title) for name, title in titles.items()]
    shape = alt.Shape("method:N", scale=alt.Scale(domain=list(METHOD_COLOURS)), legend=None)
    position = (x_axis, y_axis, shape)
    common: dict[str, Any] = {"size": 95, "opacity": 1}
    full, mixed = (alt.Chart().transform_filter(f"{sign}datum.mixed") for sign in ("!", ""))
    line = alt.Chart().mark_line(strokeWidth=1.5, opacity=0.75)
    return [
        line.encode(x_axis, y_axis, method_colour(), alt.Detail("precision:N")),
        full.mark_point(filled=True, **common).encode(*position, method_colour(), tooltip=tooltip),
        mixed.mark_point(filled=True, style="mask", **common).encode(*position),
        mixed.mark_point(strokeWidth=2, **common).encode(
            *position, method_colour(), tooltip=tooltip
        ),
    ]


def method_colour() -> alt.Color:
    """Encode the method as colour; an ordinal field uses another palette than engines do."""
    return alt.Color("method:O", scale=alt.Scale(domain=list(METHOD_COLOURS)), legend=None)


def samples_axis() -> alt.X:
    """Return a logarithmic axis with a tick at each number of calibration samples."""
    scale = alt.Scale(type="log", domain=slot("samples"), nice=False)
    axis = alt.Axis(values=slot("counts"), format=",d", labelOverlap=True)
    return alt.X("place:Q", scale=scale, axis=axis, title="calibration samples (logarithmic)")


def counts_of(extent: Sequence[Point]) -> dict[str, Any]:
    """Return the ticks and the ends of `samples_axis`."""
    counts = sorted({point["samples"] for point in extent})
    return {"counts": counts, "samples": domain(counts)}


def domain(counts: Sequence[int]) -> list[float]:
    """Return the ends of the axis, with room around the first and the last count."""
    pad = max((counts[-1] / counts[0]) ** 0.12, 1.5)
    return [counts[0] / pad, counts[-1] * pad]


def spread(points: Sequence[Point], extent: Sequence[Point]) -> list[Point]:
    """Add a `place` on the axis to each point, so that series at the same count do not overlap."""
    low, high = domain(sorted({point["samples"] for point in extent}))
    names = list(dict.fromkeys((point["method"], point["precision"]) for point in points))
    middle = (len(names) - 1) / 2
    step = {name: (high / low) ** (SPREAD * (i - middle)) for i, name in enumerate(names)}
    return [
        {**point, "place": point["samples"] * step[point["method"], point["precision"]]}
        for point in points
    ]


def sensitivity_chart(rows: Sequence[Point], *, description: str) -> dict[str, Any]:
    """Chart the KL divergence (millinats, logarithmic) of operators, a named bar each, in order.

    A row has operator, millinats, in_float (bool: drawn in another colour), name (the text above
    the bar), and the texts label and agreement.
    """
    highest = max((row["millinats"] for row in rows), default=0)
    visible = [row for row in rows if row["millinats"] > highest * LEAST]
    title = "KL divergence, millinats (logarithmic)"
    x_axis = log_axis(visible, ("millinats",), "millinats", title=title)
    x_axis["axis"].labelExpr = "format(datum.value, datum.value < 0.001 ? '~e' : '~r')"
    start = x_axis["scale"]["domain"][0]
    bars = [{**row, "millinats": max(row["millinats"], start)} for row in rows]
    order = alt.Y("operator:N", sort=[row["operator"] for row in rows], axis=None)
    titles = {"operator": "operator", "label": "KL, millinats", "agreement": "agreement"}
    tooltip = [alt.Tooltip(f"{name}:N", title=title) for name, title in titles.items()]
    layers = [
        alt.Chart()
        .transform_filter(f"{sign}datum.in_float")
        .mark_bar(style=style, height=5, yOffset=6)
        .encode(x_axis, order, x2=alt.X2Datum(start), tooltip=tooltip)
        for sign, style in (("!", "bars"), ("", "marked"))
    ]
    for field, align, position in (("name", "left", 0), ("label", "right", "width")):
        layers += labels(alt.Chart(), field, order, align=align, x=alt.XValue(position), yOffset=-5)
    height = ROW_HEIGHT * len(rows)
    chart = alt.layer(*layers, data=values(bars)).properties(width="container", height=height)
    return to_specification(chart, description)
