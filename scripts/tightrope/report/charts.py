"""The charts, as Vega-Lite specifications: their shared parts, then each of them.

A specification names no colour: engines and precisions are positions in the palettes of
`palette.chart_config`, so that one specification serves the light and the dark page.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from operator import itemgetter
from typing import Any

from tightrope.report.style.palette import COLOURS, METHOD_COLOURS, SHAPES

Part = dict[str, Any]
SCHEMA = "https://vega.github.io/schema/vega-lite/v6.json"
LINEAR_SPAN = 12  # accuracy points; a wider range gets a symlog axis
TOLD = ("variant", "latency", "change")  # texts of a tooltip of accuracy and latency
EXTENT = 34  # pixels left of both panels, so that their x axes align
SPREAD = 0.025  # offset between series at the same count, as a share of the width
HEAD_ROOM = 0.03  # axis room per letter of a name, as a share of the slowest training's time
NEAR = 0.25  # share of the longest training; names closer than this would overlap
# pixels: the chart of trainings, a line of it, a row of a heat map
TRAINING_HEIGHT, LINE, HEAT_HEIGHT = 240, 16, 46


def quantity(field: str, **options: Any) -> Part:
    """Encode a field of numbers."""
    return {"field": field, "type": "quantitative", **options}


def nominal(field: str, **options: Any) -> Part:
    """Encode a field of texts."""
    return {"field": field, "type": "nominal", **options}


def ordinal(field: str, **options: Any) -> Part:
    """Encode a field of texts or numbers in an order."""
    return {"field": field, "type": "ordinal", **options}


def palette(field: str, names: Iterable[str], kind: str = "nominal") -> Part:
    """Encode a field as its places among `names`; an `ordinal` one has another palette."""
    return {"field": field, "type": kind, "scale": {"domain": list(names)}, "legend": None}


# an unknown engine gets a default of the palette
ENGINE = palette("engine", COLOURS)
PRECISION = palette("precision", SHAPES)
METHOD = palette("method", METHOD_COLOURS, "ordinal")
METHOD_SHAPE = palette("method", METHOD_COLOURS)


def chart(layers: Sequence[Part], rows: Sequence[Any], description: str, **options: Any) -> Part:
    """Return the specification of a chart of these rows, as wide as its container."""
    return {
        "$schema": SCHEMA,
        "autosize": {"type": "fit-x", "contains": "padding"},
        "data": {"values": rows},
        "layer": layers,
        "width": "container",
        "description": description,
        **options,
    }


def layer(mark: str, look: Part, *, where: Any = "", rows: Any = None, **channels: Any) -> Part:
    """Return a layer: a mark for each row of the chart, or of its own `rows`, which has `where`."""
    return {
        "mark": {"type": mark, **look},
        "encoding": channels,
        **({"transform": [{"filter": where}]} if where else {}),
        **({} if rows is None else {"data": {"values": rows}}),
    }


def labels(
    field: str, look: Part, *, where: Any = "", rows: Any = None, **channels: Any
) -> list[Part]:
    """Return text with a halo in the page's colour, so that lines do not cross it."""
    room = {"expr": "width - 60"}  # leave room for the number at the other end of the row
    text = {"where": where, "rows": rows, "text": nominal(field), **channels}
    styles = ({"style": style, "limit": room, **look} for style in ("halo", "label"))
    return [layer("text", style, **text) for style in styles]


def marks(
    position: Part, colour: Part, tooltip: list[Part], hollow: str, **look: Any
) -> list[Part]:
    """Return a mark per row: filled, or where `hollow` is set the page's colour with a rim."""
    drawn = {"color": colour, "tooltip": tooltip}
    size = {"opacity": 1, **look}
    where = f"datum.{hollow}"
    return [
        layer("point", {"filled": True, **size}, where=f"!{where}", **position, **drawn),
        layer("point", {"filled": True, "style": "mask", **size}, where=where, **position),
        layer("point", {"strokeWidth": 2, **size}, where=where, **position, **drawn),
    ]


def tooltips(*fields: str, **titles: str) -> list[Part]:
    """Return tooltips with these text fields, under their names or titles."""
    named = {**{field: field for field in fields}, **titles}
    return [nominal(field, title=title) for field, title in named.items()]


def log_axis(
    rows: Iterable[Mapping[str, Any]], fields: Sequence[str], field: str, *, title: str
) -> Part:
    """Return a logarithmic axis with round ticks that covers these fields of the rows."""
    numbers = [row[name] for row in rows for name in fields if row.get(name)]
    low, high = min(numbers, default=1), max(numbers, default=1)
    pad = max((high / low) ** 0.06, 1.08)
    ends = [low / pad, high * pad]
    axis = {"values": log_ticks(*ends), "format": "~r", "labelOverlap": True}
    scale = {"type": "log", "domain": ends, "nice": False}
    return quantity(field, scale=scale, axis=axis, title=title)


def log_ticks(low: float, high: float) -> list[float]:
    """Return round numbers between the ends: four to about ten if the range allows."""
    decades = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    halves, finest = (1, 1.2, 1.5, 2, 2.5, 3, 4, 5, 6, 8), [x / 20 for x in range(20, 200)]
    tenths = (1, 1.1, 1.2, 1.3, 1.4, 1.6, 1.8, *(x / 2 for x in range(4, 20)))
    for steps in ((1,), (1, 3), (1, 2, 5), (1, 1.5, 2, 3, 5, 7), halves, tenths, finest):
        ticks = [float(f"{step * 10.0**decade:.6g}") for decade in decades for step in steps]
        ticks = [tick for tick in ticks if low <= tick <= high]
        if len(ticks) >= 4:
            break
    return ticks[:: math.ceil(len(ticks) / 10) or 1]


def zero_and_budget(y_axis: Part, budget_points: float | None) -> list[Part]:
    """Return the line of no change, and the named one below which a drop exceeds the budget."""
    lines = [layer("rule", {"style": "zero"}, rows=[{"delta": 0}], y=y_axis)]
    if budget_points is not None:
        rows = [{"delta": -budget_points, "name": "accuracy budget"}]
        lines += [layer("rule", {"style": "budget"}, rows=rows, y=y_axis)]
        look = {"align": "right", "dy": 11}
        lines += labels("name", look, rows=rows, y=y_axis, x={"value": "width"})
    return lines


def accuracy_axis(points: Sequence[Mapping[str, Any]], budget_points: float | None) -> Part:
    """Return the accuracy axis, compressed if a variant falls far, so that others stay apart."""
    fields = ("delta", "delta_low", "delta_high")
    changes = [0, *(point[name] for point in points for name in fields)]
    low, high = min(*changes, -(budget_points or 0)), max(changes)
    axis: Part = {"tickCount": 6, "format": "+~r"}
    axis["labelExpr"] = "datum.value ? datum.label : '0'"
    if high - low > LINEAR_SPAN:
        ticks = [0, *(sign * size for size in (1, 3, 10, 30, 100) for sign in (1, -1))]
        axis |= {"values": ticks, "labelOverlap": False}
        scale = {"type": "symlog", "constant": 1, "domain": [low * 1.2, high + 1], "nice": False}
    else:
        pad = 0.08 * max(high - low, 1)
        scale = {"domain": [low - pad, high + pad], "nice": False}
    return quantity("delta", scale=scale, axis=axis, title=None)


def is_compressed(axis: Part) -> bool:
    """Return whether an accuracy axis is compressed."""
    return axis["scale"].get("type") == "symlog"


def interval(axis: Part, low: str, high: str, channel: str, **channels: Any) -> Part:
    """Return the channels of an interval along an axis."""
    return {channel: {**axis, "field": low}, f"{channel}2": {"field": high}, **channels}


def accuracy_latency_chart(
    points: Sequence[Part],
    *,
    budget_points: float | None,
    description: str,
    models: Sequence[str] = (),
    links: Sequence[Part] = (),
) -> Part:
    """Chart accuracy change (points) against latency (ms), logarithmic.

    A point has variant, engine, precision, front (its number on the Pareto front, or None), deploy
    (bool: it has a ring), the tooltip texts latency and change, latency_ms, latency_low,
    latency_high, delta, delta_low, delta_high (points). Points come fastest first.

    Of several `models`, which have a colour each, a point has model and recommended (bool) in
    place of engine and deploy. What is recommended is large, named, and has an interval. A link
    has the latency_ms and delta of a parent's recommended variant, and those of its child's with
    the suffix `_child`.
    """
    ends = ("latency_low", "latency_ms", "latency_high")
    x_axis = log_axis(points, ends, "latency_ms", title="latency, ms (logarithmic)")
    y_axis = accuracy_axis(points, budget_points)
    position = {"x": x_axis, "y": y_axis}
    colour = palette("model", models, "ordinal") if models else ENGINE
    chosen, marked = ("datum.recommended",) * 2 if models else ("datum.deploy", "")
    seen = {**position, "color": colour, "shape": PRECISION}
    told = tooltips("model", *TOLD) if models else tooltips(*TOLD)
    look = {"filled": True, "size": 130 if models else 110, "opacity": 1}
    spans = (
        interval(y_axis, "delta_low", "delta_high", "y", x=x_axis, color=colour),
        interval(x_axis, "latency_low", "latency_high", "x", y=y_axis, color=colour),
    )
    layers = zero_and_budget(y_axis, budget_points)
    if links:
        to_child = {"x2": {"field": "latency_ms_child"}, "y2": {"field": "delta_child"}}
        layers += [layer("rule", {"style": "edge"}, rows=links, **position, **to_child)]
    front = {"style": "front", "interpolate": "step-after"}
    layers += [layer("line", front, where="datum.front", **position)]
    layers += [layer("rule", {"opacity": 0.75}, where=marked, **span) for span in spans]
    if models:
        small = {"filled": True, "size": 55, "opacity": 0.6}
        layers += [layer("point", small, where=f"!{chosen}", **seen, tooltip=told)]
    ring = {"style": "ring", "size": 430, "shape": "circle"}
    layers += [layer("point", ring, where=chosen, **position)]
    layers += [layer("point", look, where=marked, **seen, tooltip=told)]
    text = {"align": "left", "dx": 12 if models else 10, "dy": -13}
    if models:
        layers += labels("model", text, where=chosen, **position)
    else:
        layers += labels("text", text, rows=front_labels(points), **position)
    change = "accuracy change from the root's baseline" if models else "accuracy change"
    title = f"{change}, points" + (" (compressed beyond 1)" if is_compressed(y_axis) else "")
    return chart(layers, points, description, title=title, height=300 if models else 270)


def front_labels(points: Sequence[Part]) -> list[Part]:
    """Return the number labels of the Pareto front; neighbours too close to read share one."""
    latencies = [point["latency_ms"] for point in points]
    near = (max(latencies) / min(latencies)) ** 0.06
    groups: list[list[Part]] = []
    for point in (point for point in points if point["front"]):
        if groups and point["latency_ms"] <= groups[-1][-1]["latency_ms"] * near:
            groups[-1].append(point)
        else:
            groups.append([point])
    numbers = [", ".join(str(point["front"]) for point in group) for group in groups]
    return [
        {"latency_ms": group[-1]["latency_ms"], "delta": group[-1]["delta"], "text": text}
        for group, text in zip(groups, numbers, strict=True)
    ]


def accuracy_over_samples(
    points: Sequence[Part], *, extent: Sequence[Part], budget_points: float | None, description: str
) -> Part:
    """Chart accuracy change (points) with its interval over calibration samples.

    A point has variant, method, precision, mixed (bool: drawn hollow), samples, delta, delta_low,
    delta_high, agreement (percent, or None), and the tooltip texts change and agreed. The axes also
    cover the points of `extent`.
    """
    x_axis, y_axis = samples_axis(extent), accuracy_axis(extent, budget_points)
    x_axis |= {"axis": {**x_axis["axis"], "labels": False}, "title": None}
    upright = interval(y_axis, "delta_low", "delta_high", "y", x=x_axis, color=METHOD)
    layers = [
        *zero_and_budget(y_axis, budget_points)[:2],
        layer("rule", {"strokeWidth": 1.5, "opacity": 0.75}, **upright),
        *series(x_axis, y_axis, change="accuracy change"),
    ]
    title = "accuracy change, points" + (" (compressed)" if is_compressed(y_axis) else "")
    return chart(layers, spread(points, extent), description, title=title, height=210)


def agreement_over_samples(
    points: Sequence[Part], *, extent: Sequence[Part], description: str
) -> Part:
    """Chart the share of predictions equal to those in fp32 (percent), same points and x axis."""
    known = [point["agreement"] - 100 for point in extent if point["agreement"] is not None]
    ends = ("delta", "delta_low", "delta_high")
    y_axis = accuracy_axis([dict.fromkeys(ends, less) for less in (*known, -1)], None)
    y_axis["field"] = "less"
    y_axis["axis"]["labelExpr"] = "format(datum.value + 100, '~r')"
    low = y_axis["scale"]["domain"][0]
    # room for a mark at 100, but not for another label
    y_axis["scale"]["domain"] = [low, min(0.4, -0.05 * low)]
    rows = [
        {**point, "less": point["agreement"] - 100}
        for point in spread(points, extent)
        if point["agreement"] is not None
    ]
    layers = series(samples_axis(extent), y_axis, agreed="agreement with fp32")
    title = "agreement with fp32, %" + (" (compressed)" if is_compressed(y_axis) else "")
    return chart(layers, rows, description, title=title, height=130)


def series(x_axis: Part, y_axis: Part, **told: str) -> list[Part]:
    """Return a mark per point, hollow for mixed precisions, and a line through each series."""
    y_axis["axis"] |= {"minExtent": EXTENT, "maxExtent": EXTENT}
    tooltip = tooltips("variant", "samples", **told)
    position = {"x": x_axis, "y": y_axis}
    detail = {"color": METHOD, "detail": nominal("precision")}
    return [
        layer("line", {"strokeWidth": 1.5, "opacity": 0.75}, **position, **detail),
        *marks({**position, "shape": METHOD_SHAPE}, METHOD, tooltip, "mixed", size=95),
    ]


def samples_axis(extent: Sequence[Part]) -> Part:
    """Return a logarithmic axis with a tick at each number of calibration samples."""
    counts = sorted({point["samples"] for point in extent})
    pad = max((counts[-1] / counts[0]) ** 0.12, 1.5)
    scale = {"type": "log", "domain": [counts[0] / pad, counts[-1] * pad], "nice": False}
    axis = {"values": counts, "format": ",d", "labelOverlap": True}
    return quantity("place", scale=scale, axis=axis, title="calibration samples (logarithmic)")


def spread(points: Sequence[Part], extent: Sequence[Part]) -> list[Part]:
    """Add a `place` on the axis to each point, so that series at the same count do not overlap."""
    low, high = samples_axis(extent)["scale"]["domain"]
    names = list(dict.fromkeys((point["method"], point["precision"]) for point in points))
    middle = (len(names) - 1) / 2
    step = {name: (high / low) ** (SPREAD * (i - middle)) for i, name in enumerate(names)}
    return [
        {**point, "place": point["samples"] * step[point["method"], point["precision"]]}
        for point in points
    ]


def training_chart(points: Sequence[Part], *, description: str) -> Part:
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
    names = place_names(points, line=LINE / TRAINING_HEIGHT * (limits[1] - limits[0]))
    told = tooltips("model", "epoch", told="accuracy, %")
    span = interval(y_axis, "low", "high", "y", x=x_axis)
    named = {"x": x_axis, "y": {**y_axis, "field": "name_at"}}
    layers = [
        layer("line", {"style": "front"}, **position, detail=nominal("model")),
        layer("rule", {"style": "zero", "opacity": 0.6}, **span),
        layer("point", mark, **position, tooltip=told),
        *labels("model", {"align": "left", "dx": 8}, rows=names, **named),
    ]
    return chart(layers, points, description, title="accuracy, %", height=TRAINING_HEIGHT)


def place_names(points: Sequence[Part], *, line: float) -> list[Part]:
    """Return the named points; `name_at` is the accuracy at which the name is drawn.

    Names of trainings that end at about the same time are `line` (percent) apart.
    """
    near = NEAR * max(point["seconds"] for point in points)
    placed: list[Part] = []
    for point in sorted((other for other in points if other["last"]), key=itemgetter("accuracy")):
        neighbours = [other for other in placed if abs(other["seconds"] - point["seconds"]) < near]
        name_at = max([point["accuracy"], *(other["name_at"] + line for other in neighbours)])
        placed.append({**point, "name_at": name_at})
    return placed


def heat(x: str, y: str, marks: Sequence[Part], columns: Sequence[Any], description: str) -> Part:
    """Chart cells of the columns, values of the field `x`, and of rows, texts of the field `y`.

    A mark has `value` (None without a number), `shown` and `below`, texts of its cell, `best`
    (bool: it has a frame), and the tooltip texts interval, calls and note.
    """
    rows = list(dict.fromkeys(mark[y] for mark in marks))
    still, wide = {"labelAngle": 0, "grid": False}, {"labelLimit": 220, "grid": False}
    scale = {"range": "heatmap", "zero": False}
    place: Part = {
        "x": ordinal(x, sort=[*columns], title=x, axis=still),
        "y": ordinal(y, sort=rows, title=None, axis=wide),
        "tooltip": tooltips(y, x, "shown", "interval", "below", "calls", "note"),
    }
    known = "isValid(datum.value)"
    colour = quantity("value", scale=scale, legend=None)
    layers = [
        layer("rect", {}, where=known, **place, color=colour),
        layer("rect", {"style": "mask"}, where=f"!{known}", **place),
        layer("rect", {"style": "ring", "fillOpacity": 0}, where="datum.best", **place),
        layer("text", {"style": "label", "dy": -8}, **place, text=nominal("shown")),
        layer("text", {"style": "label", "dy": 9}, **place, text=nominal("below")),
    ]
    return chart(layers, marks, description, height=HEAT_HEIGHT * len(rows))


def lines(points: Sequence[Part], x_title: str, y_title: str, description: str) -> Part:
    """Chart a line per variant, both axes logarithmic.

    A point has variant, engine, x, value, and low and high where it has an interval.
    """
    axis = log_axis(points, ("value", "low", "high"), "value", title=y_title)
    drawn = {"x": log_axis(points, ("x",), "x", title=x_title)}
    drawn |= {"color": ENGINE, "detail": nominal("variant")}
    told = tooltips("variant", x=x_title, value=y_title)
    layers = [
        layer("line", {}, y=axis, **drawn),
        layer("point", {"filled": True, "opacity": 1}, y=axis, tooltip=told, **drawn),
    ]
    if any("low" in point for point in points):
        layers.insert(0, layer("rule", {}, **interval(axis, "low", "high", "y", **drawn)))
    return chart(layers, points, description, height=220)
