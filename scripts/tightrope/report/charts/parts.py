"""Charts of the report as plain Vega-Lite specifications.

A specification names no colour: engines and precisions are positions in the palettes of
`chart_style.chart_config`, so one specification serves the light and the dark page.
"""

import math
from collections.abc import Iterable, Sequence
from typing import Any

import altair as alt

from tightrope.report.style.palette import COLOURS, SHAPES

ROW_HEIGHT = 38  # a line for the name, below it the mark
MARK_OFFSET = 8
LINEAR_SPAN = 12  # points of accuracy; beyond it the axis is compressed around zero


def accuracy_latency_chart(
    points: Sequence[dict[str, Any]], *, budget_points: float | None, description: str
) -> dict[str, Any]:
    """Accuracy change (points) against latency (ms, logarithmic), as wide as its container.

    A point has variant, engine, precision, latency_ms, latency_low, latency_high, delta,
    delta_low, delta_high, front (its number on the Pareto front, or None), deploy (bool), and
    the texts latency and change for the tooltip; points come fastest first.
    """
    across = horizontal(points, ("latency_low", "latency_ms", "latency_high"), "latency_ms")
    across.title = "latency, ms (logarithmic)"
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


def speedup_chart(
    rows: Sequence[dict[str, Any]], *, extent: Sequence[float], description: str
) -> dict[str, Any]:
    """Speed-ups with their intervals (logarithmic), one named row each, baseline at 1.

    A row has variant, engine, precision, ratio, low, high, label and tie (bool), and the texts
    speedup, interval and verdict for the tooltip; rows are drawn in the order given. `extent`
    are ratios that the axis must also reach.
    """
    wide = [*rows, *({"ratio": ratio} for ratio in (*extent, 1))]
    across = horizontal(wide, ("low", "ratio", "high"), "ratio")
    across.title = "speed-up over the baseline (logarithmic)"
    order = alt.Y("variant:N", sort=[row["variant"] for row in rows], axis=None)
    marks = alt.Chart()
    bar = marks.mark_rule(strokeWidth=2, opacity=0.75, yOffset=MARK_OFFSET)
    layers = [
        marks.mark_rule(style="row", yOffset=ROW_HEIGHT / 2).encode(order),
        alt.Chart(values([{"ratio": 1}])).mark_rule(style="budget").encode(across),
        bar.encode(order, engine_colour(), x=clone(across, "low"), x2="high:Q"),
        *ratio_marks(across, order),
        *labels(marks, "variant", order, align="left", x=alt.value(0), yOffset=-9),
        *labels(marks, "label", order, align="right", x=alt.value("width"), yOffset=-9),
    ]
    chart = alt.layer(*layers, data=values(rows)).properties(
        width="container", height=ROW_HEIGHT * len(rows)
    )
    return finished(chart, description)


def ratio_marks(across: alt.X, order: alt.Y) -> list[alt.Chart]:
    """One mark a row: full, or hollow for a tie, with the page's colour inside."""
    common = {"size": 95, "opacity": 1, "yOffset": MARK_OFFSET}
    place = (across, order, precision_shape())
    full, ties = (alt.Chart().transform_filter(f"{sign}datum.tie") for sign in ("!", ""))
    told = {"tooltip": tips("speedup", "interval", "verdict")}
    return [
        full.mark_point(filled=True, **common).encode(*place, engine_colour(), **told),
        ties.mark_point(filled=True, style="mask", **common).encode(*place),
        ties.mark_point(strokeWidth=2, **common).encode(*place, engine_colour(), **told),
    ]


def labels(chart: alt.Chart, field: str, y: alt.Y, *, x: Any, **mark: Any) -> list[alt.Chart]:
    """Text with a rim in the colour of the page, so that lines do not cross it."""
    room = alt.ExprRef("width - 60")  # for the number at the other end of the row
    return [
        chart.mark_text(style=style, limit=room, **mark).encode(x=x, y=y, text=f"{field}:N")
        for style in ("halo", "label")
    ]


def front_labels(points: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """The numbers of the Pareto front; neighbours too close to be read apart share one text."""
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


def finished(chart: alt.LayerChart, description: str) -> dict[str, Any]:
    """The specification without altair's own config."""
    chart = chart.properties(
        description=description, autosize=alt.AutoSizeParams(type="fit-x", contains="padding")
    )
    specification = chart.to_dict()
    specification.pop("config", None)
    return specification


def values(rows: Iterable[dict[str, Any]]) -> alt.Data:
    """Inline data."""
    return alt.Data(values=list(rows))


def clone(channel: alt.X | alt.Y, field: str) -> alt.X | alt.Y:
    """The same axis and scale for another field."""
    other = channel.copy()
    other.shorthand = f"{field}:Q"
    return other


def engine_colour() -> alt.Color:
    """Engine by colour; unknown engines take what the palette gives."""
    return alt.Color("engine:N", scale=alt.Scale(domain=list(COLOURS)), legend=None)


def precision_shape() -> alt.Shape:
    """Precision by shape."""
    return alt.Shape("precision:N", scale=alt.Scale(domain=list(SHAPES)), legend=None)


def tips(*fields: str) -> list[alt.Tooltip]:
    """The variant and these prepared texts, shown under the pointer."""
    return [alt.Tooltip(f"{field}:N", title=field) for field in ("variant", *fields)]


def budget_layers(budget_points: float | None, up: alt.Y) -> list[alt.Chart]:
    """The line below which accuracy falls out of the budget, with its name."""
    if budget_points is None:
        return []
    line = alt.Chart(values([{"delta": -budget_points, "name": "accuracy budget"}]))
    name = labels(line, "name", up, x=alt.value("width"), align="right", dy=11)
    return [line.mark_rule(style="budget").encode(up), *name]


def horizontal(rows: Iterable[dict[str, Any]], fields: Sequence[str], field: str) -> alt.X:
    """A logarithmic axis that holds these fields of the rows, with round ticks."""
    seen = [row[name] for row in rows for name in fields if row.get(name)]
    low, high = min(seen, default=1), max(seen, default=1)
    pad = max((high / low) ** 0.06, 1.08)
    ends = [low / pad, high * pad]
    axis = alt.Axis(values=log_ticks(*ends), format="~r", labelOverlap=True)
    return alt.X(f"{field}:Q", scale=alt.Scale(type="log", domain=ends, nice=False), axis=axis)


def log_ticks(low: float, high: float) -> list[float]:
    """Round numbers between the ends: four to about ten where the range allows."""
    decades = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    halves, finest = (1, 1.2, 1.5, 2, 2.5, 3, 4, 5, 6, 8), [x / 20 for x in range(20, 200)]
    tenths = (1, 1.1, 1.2, 1.3, 1.4, 1.6, 1.8, *(x / 2 for x in range(4, 20)))
    for steps in ((1,), (1, 3), (1, 2, 5), (1, 1.5, 2, 3, 5, 7), halves, tenths, finest):
        ticks = [float(f"{step * 10.0**decade:.6g}") for decade in decades for step in steps]
        ticks = [tick for tick in ticks if low <= tick <= high]
        if len(ticks) >= 4:
            break
    return ticks[:: math.ceil(len(ticks) / 10) or 1]


def vertical(points: Sequence[dict[str, Any]], budget_points: float | None) -> alt.Y:
    """The accuracy axis; where a variant falls far it is compressed, so that others stay apart."""
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
