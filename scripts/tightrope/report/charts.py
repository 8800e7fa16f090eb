"""Shared parts of the charts, as Vega-Lite specifications.

A specification names no colour: engines and precisions are positions in the palettes of
`palette.chart_config`, so that one specification serves the light and the dark page.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from tightrope.report.style.palette import COLOURS, METHOD_COLOURS, SHAPES

Part = dict[str, Any]
SCHEMA = "https://vega.github.io/schema/vega-lite/v6.json"
LINEAR_SPAN = 12  # accuracy points; a wider range gets a symlog axis


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


def line_at(style: str, rows: Sequence[Any], **channels: Any) -> Part:
    """Return lines across the chart, one for each of the rows."""
    return layer("rule", {"style": style}, rows=rows, **channels)


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


def budget_line(budget_points: float | None, y_axis: Part) -> list[Part]:
    """Return the line below which the accuracy drop exceeds the budget, with its name."""
    if budget_points is None:
        return []
    rows = [{"delta": -budget_points, "name": "accuracy budget"}]
    name = labels("name", {"align": "right", "dy": 11}, rows=rows, y=y_axis, x={"value": "width"})
    return [line_at("budget", rows, y=y_axis), *name]


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
