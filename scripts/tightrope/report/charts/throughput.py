"""Heat map of throughput, as a Vega-Lite specification.

It names no colour: the scale is the range `heatmap` of `palette.chart_config`.
"""

from collections.abc import Sequence
from typing import Any

import altair as alt

from tightrope.report.charts.parts import to_specification, values

ROW_HEIGHT = 46  # pixels, for two lines of text


def throughput_chart(cells: Sequence[dict[str, Any]], *, description: str) -> dict[str, Any]:
    """Chart samples per second: a row per division of the cores, a column per batch.

    A cell has division (text), batch, samples_per_s (None without numbers), best (bool), the text
    in it as rate and p99, and the tooltip texts interval, calls and reason. Rows and columns are in
    the given order.
    """
    rows = list(dict.fromkeys(cell["division"] for cell in cells))
    batches = sorted({cell["batch"] for cell in cells})
    place = (
        alt.X("batch:O", sort=batches, title="batch", axis=alt.Axis(labelAngle=0, grid=False)),
        alt.Y("division:O", sort=rows, title=None, axis=alt.Axis(labelLimit=220, grid=False)),
    )
    colour = alt.Color("samples_per_s:Q", scale=alt.Scale(range="heatmap", zero=False), legend=None)
    tooltip = [
        alt.Tooltip(f"{name}:N", title=name.replace("_", " "))
        for name in ("division", "batch", "rate", "interval", "p99", "calls", "note")
    ]
    marks = alt.Chart()
    full = marks.transform_filter("isValid(datum.samples_per_s)")
    layers = [
        full.mark_rect().encode(*place, colour, tooltip=tooltip),
        marks.transform_filter("!isValid(datum.samples_per_s)")
        .mark_rect(style="mask")
        .encode(*place, tooltip=tooltip),
        marks.transform_filter("datum.best")
        .mark_rect(style="ring", fillOpacity=0)
        .encode(*place, tooltip=tooltip),
        marks.mark_text(style="label", dy=-8).encode(
            *place, text=alt.Text("rate:N"), tooltip=tooltip
        ),
        marks.mark_text(style="label", dy=9).encode(
            *place, text=alt.Text("p99:N"), tooltip=tooltip
        ),
    ]
    chart = alt.layer(*layers, data=values(cells)).properties(
        width="container", height=ROW_HEIGHT * len(rows)
    )
    return to_specification(chart, description)
