"""Parts that charts of the report share, as plain Vega-Lite specifications.

A specification names no colour: engines and precisions are positions in the palettes of
`palette.chart_config`, so one specification serves the light and the dark page.
"""

import math
from collections.abc import Iterable, Sequence
from typing import Any

import altair as alt

from tightrope.report.style.palette import COLOURS, SHAPES


def labels(chart: alt.Chart, field: str, y: alt.Y, *, x: Any, **mark: Any) -> list[alt.Chart]:
    """Text with a rim in the colour of the page, so that lines do not cross it."""
    room = alt.ExprRef("width - 60")  # for the number at the other end of the row
    return [
        chart.mark_text(style=style, limit=room, **mark).encode(x=x, y=y, text=f"{field}:N")
        for style in ("halo", "label")
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
