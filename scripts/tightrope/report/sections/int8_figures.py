"""Figures on INT8: accuracy over calibration samples, and operator sensitivity.

The charts name no colour: methods are positions in the palette of `palette.chart_config`.
"""

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
    filled,
    labels,
    log_axis,
    slot,
    to_specification,
    values,
)
from tightrope.report.sections.figures import join_title
from tightrope.report.style.numbers import (
    bounded,
    is_number,
    percentage,
    points,
    points_interval,
    whole,
)
from tightrope.report.style.palette import METHOD_COLOURS

Record = Mapping[str, Any]
MOST_OPERATORS = 40
MARK = "\N{BLACK DIAMOND}"
EXTENT = 34  # pixels left of both panels, so that their x axes align
SPREAD = 0.025  # offset between series at the same count, as a share of the width
ROW_HEIGHT = 24  # pixels for the name and the bar below it
LEAST = 1e-6  # share of the highest bar below which a bar has no length
TOOLTIP_TITLES = {"change": "accuracy change", "agreed": "agreement with fp32"}
Point = dict[str, Any]


def calibration_figures(
    rows: Sequence[Record], hosts: Mapping[str, str], budget_points: float | None
) -> list[dict[str, Any]]:
    """Return a figure per engine, device and host, on common axes, without repaired variants.

    A group with one calibration has no panels, but a `sentence`.
    """
    groups: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
    devices = {row["result"].get("device") for row in rows}
    for row in rows:
        point = calibration_point(row)
        if point:
            fields = [row["result"].get(key) for key in ("engine", "device", "host")]
            groups.setdefault(tuple(fields), []).append(point)
    drawn = [group for group in groups.values() if len(calibrations(group)) > 1]
    all_points = [point for group in drawn for point in group]
    return [
        calibration_figure(
            join_title(engine, device if len(devices) > 1 else None, hosts.get(host)),
            group,
            all_points,
            budget_points,
        )
        for (engine, device, host), group in groups.items()
    ]


def calibration_point(row: Record) -> dict[str, Any] | None:
    """Return the point of a row, None if it has a repair or no accuracy change."""
    accuracy = row["accuracy"]
    delta = accuracy.get("delta")
    if row["samples"] is None or row["repair"] or not is_number(delta):
        return None
    ends = [accuracy.get(end) for end in ("delta_low", "delta_high")]
    low, high = (end if is_number(end) else delta for end in ends)
    precision = str(row["result"].get("precision"))
    agreement, samples = accuracy.get("agreement"), accuracy.get("samples")
    agreed = percentage(agreement, samples)
    return {
        "variant": row["result"].get("variant"),
        "method": row["method"],
        "precision": precision,
        "mixed": "-" in precision,
        "samples": row["samples"],
        "delta": 100 * delta,
        "delta_low": 100 * low,
        "delta_high": 100 * high,
        "agreement": 100 * agreement if is_number(agreement) else None,
        "change": f"{points(delta, samples)} points ({points_interval(accuracy) or 'no interval'})",
        "agreed": f"{agreed} %" if agreed else None,
    }


def calibrations(group: Iterable[Record]) -> set[tuple[str, int]]:
    """Return method and samples of each calibration of the points."""
    return {(point["method"], point["samples"]) for point in group}


def calibration_figure(
    title: str, group: list[dict[str, Any]], all_points: list[dict[str, Any]], budget: float | None
) -> dict[str, Any]:
    """Return two stacked panels and their table; the axes cover `all_points`."""
    group.sort(key=lambda point: (point["precision"], point["method"], point["samples"]))
    if len(calibrations(group)) == 1:
        sentence = calibration_sentence(group)
        return {"title": title, "points": group, "panels": [], "sentence": sentence}
    change, agreed = (describe(title, group, field) for field in ("change", "agreed"))
    panels = [
        {
            "description": f"Accuracy change over calibration samples, {change}",
            "chart": accuracy_over_samples(
                group, extent=all_points, budget_points=budget, description=change
            ),
        }
    ]
    if any(point["agreed"] for point in group):
        panels.append(
            {
                "description": f"Agreement with fp32 over calibration samples, {agreed}",
                "chart": agreement_over_samples(group, extent=all_points, description=agreed),
            }
        )
    return {"title": title, "points": group, "panels": panels, "sentence": None}


def calibration_sentence(group: Sequence[Record]) -> str:
    """Describe the points of one calibration in words."""
    parts = [
        f"{point['precision']} {point['change']}"
        + (f", {point['agreed']} agreement with fp32" if point["agreed"] else "")
        for point in group
    ]
    return (
        f"one calibration, {group[0]['method']} on {whole(group[0]['samples'])} samples: "
        f"{'; '.join(parts)}"
    )


def describe(title: str, group: Iterable[Record], field: str) -> str:
    """Describe a panel in words."""
    labels = [
        f"{point['precision']} {point['method']} {point['samples']}: {point[field]}"
        for point in group
        if point[field]
    ]
    return f"{title}: {'; '.join(labels)}."


def sensitivity_figure(name: str, record: Record, searches: Iterable[Record]) -> dict[str, Any]:
    """Return operators alone in INT8, most sensitive first; those that int8-auto left are marked.

    `name` has scheme and calibration; `rows` holds all operators, the chart the first
    MOST_OPERATORS.
    """
    matching = [search for search in searches if search["calibration"] == name.partition("-")[2]]
    in_float = {operator for search in matching for operator in search["in_float"]}
    rows = [{**row, "in_float": row["operator"] in in_float} for row in record["operators"]]
    bars = [sensitivity_bar(row) for row in rows[:MOST_OPERATORS]]
    first = f"{bars[0]['operator']} with {bars[0]['label']} millinats" if bars else "none"
    description = (
        f"Divergence that each of {len(rows)} operators alone in INT8 brings, {name}; the most "
        f"sensitive is {first}. Left in float: {', '.join(sorted(in_float)) or 'none'}."
    )
    return {
        "title": name,
        "samples": record["samples"],
        "rows": rows,
        "drawn": len(bars),
        "searched": bool(matching),
        "left": len(in_float),
        "description": description,
        "chart": sensitivity_chart(bars, description=description),
    }


def sensitivity_bar(row: Record) -> dict[str, Any]:
    """Return the bar of an operator."""
    return {
        "operator": row["operator"],
        "millinats": 1e3 * row["kl"],
        "in_float": row["in_float"],
        "name": f"{MARK} {row['operator']}" if row["in_float"] else row["operator"],
        "label": bounded(row["kl"], 0.001, 1000),
        "agreement": f"{percentage(row['agreement'])} %",
    }


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
