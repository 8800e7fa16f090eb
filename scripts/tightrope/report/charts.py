"""Shared parts of the charts, as Vega-Lite specifications.

A specification names no colour: engines and precisions are positions in the palettes of
`palette.chart_config`, so that one specification serves the light and the dark page.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar, TypeVar

import altair as alt

from tightrope.report.style.palette import COLOURS, SHAPES


class Slot:
    """A place in a specification, which altair takes as it is.

    Altair copies a whole chart at each of its steps, which of many charts takes most of the time:
    it makes a layout with slots once, and `filled` fills them in for each chart.
    """

    # what makes it a part of a specification to altair
    _schema: ClassVar[dict[str, Any]] = {"type": "object"}

    def __init__(self, name: str) -> None:
        self.name = name

    def to_dict(self) -> "Slot":
        """Return the slot, to be filled later."""
        return self


def slot(name: str) -> Any:
    """Return a slot in the place of a value of any type."""
    return Slot(name)


def filled(layout: Any, values: Mapping[str, Any]) -> Any:
    """Return a copy of a specification with these values in its slots, which are not copied."""
    if isinstance(layout, Slot):
        return values[layout.name]
    if isinstance(layout, dict):
        return {key: filled(part, values) for key, part in layout.items()}
    if isinstance(layout, list):
        return [filled(part, values) for part in layout]
    return layout


Channel = TypeVar("Channel", alt.X, alt.Y)


def labels(
    chart: alt.Chart, field: str, y: alt.Y | alt.YValue, *, x: Any, **mark: Any
) -> list[alt.Chart]:
    """Return text with a halo in the page's colour, so that lines do not cross it."""
    room = alt.ExprRef("width - 60")  # leave room for the number at the other end of the row
    return [
        chart.mark_text(style=style, limit=room, **mark).encode(
            x=x, y=y, text=alt.Text(f"{field}:N")
        )
        for style in ("halo", "label")
    ]


def to_specification(
    chart: alt.LayerChart | alt.FacetChart, description: str | Slot
) -> dict[str, Any]:
    """Return the specification without altair's own config.

    It is not validated, which would take most of the time of a page with many charts; a test
    validates every kind of chart.
    """
    chart = chart.properties(autosize=alt.AutoSizeParams(type="fit-x", contains="padding"))
    specification = chart.to_dict(validate=False)
    specification.pop("config", None)
    return {**specification, "description": description}


def values(rows: Iterable[dict[str, Any]] | Slot) -> alt.Data:
    """Return the rows as inline data."""
    # altair copies a list with all that is in it at each step of a chart, and a tuple never
    return alt.Data(values=rows if isinstance(rows, Slot) else tuple(rows))


def clone(channel: Channel, field: str) -> Channel:
    """Return the same axis and scale for another field."""
    cloned = channel.copy()
    cloned.shorthand = f"{field}:Q"
    return cloned


def engine_colour() -> alt.Color:
    """Encode the engine as colour; unknown engines get a default of the palette."""
    return alt.Color("engine:N", scale=alt.Scale(domain=list(COLOURS)), legend=None)


def precision_shape() -> alt.Shape:
    """Encode the precision as shape."""
    return alt.Shape("precision:N", scale=alt.Scale(domain=list(SHAPES)), legend=None)


def tooltips(*fields: str) -> list[alt.Tooltip]:
    """Return tooltips with the variant and these text fields."""
    return [alt.Tooltip(f"{field}:N", title=field) for field in ("variant", *fields)]


def log_axis(
    rows: Iterable[dict[str, Any]], fields: Sequence[str], field: str, *, title: str
) -> alt.X:
    """Return a logarithmic axis with round ticks that covers these fields of the rows."""
    return log_axis_of(*log_range(rows, fields), field, title=title)


def log_range(
    rows: Iterable[dict[str, Any]], fields: Sequence[str]
) -> tuple[list[float], list[float]]:
    """Return the ends and the ticks of a logarithmic axis that covers these fields."""
    numbers = [row[name] for row in rows for name in fields if row.get(name)]
    low, high = min(numbers, default=1), max(numbers, default=1)
    pad = max((high / low) ** 0.06, 1.08)
    ends = [low / pad, high * pad]
    return ends, log_ticks(*ends)


def log_axis_of(ends: Any, ticks: Any, field: str, *, title: str) -> alt.X:
    """Return a logarithmic axis with these ends and ticks."""
    axis = alt.Axis(values=ticks, format="~r", labelOverlap=True)
    scale = alt.Scale(type="log", domain=ends, nice=False)
    return alt.X(f"{field}:Q", scale=scale, axis=axis, title=title)


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


LINEAR_SPAN = 12  # accuracy points; a wider range gets a symlog axis


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
