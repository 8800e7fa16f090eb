"""Chart of speed-ups."""

from collections.abc import Sequence
from functools import cache
from typing import Any

import altair as alt
from altair.utils.schemapi import debug_mode

from tightrope.report.charts.layouts import filled, slot
from tightrope.report.charts.parts import (
    clone,
    engine_colour,
    labels,
    log_axis_of,
    log_range,
    precision_shape,
    to_specification,
    tooltips,
    values,
)

ROW_HEIGHT = 38  # pixels for the name and the mark below it
MARK_OFFSET = 8
BASELINE_HEIGHT = 18  # of the baseline's line in a row, which ends below the name


def speedup_chart(
    rows: Sequence[dict[str, Any]], *, extent: Sequence[float], description: str
) -> dict[str, Any]:
    """Chart speed-ups with their intervals (logarithmic), a named row each, baseline at 1.

    A row has variant, engine, precision, ratio, low, high, label and tie (bool), and the tooltip
    texts speedup, interval and verdict; rows are drawn in the given order. The axis also covers the
    ratios in `extent`.
    """
    covered = [*rows, *({"ratio": ratio} for ratio in (*extent, 1))]
    ends, ticks = log_range(covered, ("low", "ratio", "high"))
    specification: dict[str, Any] = filled(
        layout(),
        {
            "ends": ends,
            "ticks": ticks,
            "order": [row["variant"] for row in rows],
            "rows": rows,
            "baselines": [{"variant": row["variant"], "ratio": 1} for row in rows],
            "description": description,
        },
    )
    return {**specification, "height": ROW_HEIGHT * len(rows)}


@cache
@debug_mode(False)
def layout() -> dict[str, Any]:
    """Return the chart with slots, which altair would refuse before they are filled."""
    title = "speed-up over the baseline (logarithmic)"
    x_axis = log_axis_of(slot("ends"), slot("ticks"), "ratio", title=title)
    order = alt.Y("variant:N", sort=slot("order"), axis=None)
    marks = alt.Chart()
    bar = marks.mark_rule(strokeWidth=2, opacity=0.75, yOffset=MARK_OFFSET)
    layers = [
        marks.mark_rule(style="row", yOffset=ROW_HEIGHT / 2).encode(order),
        baseline_line(x_axis, order),
        bar.encode(order, engine_colour(), x=clone(x_axis, "low"), x2=alt.X2("high:Q")),
        *ratio_marks(x_axis, order),
        *labels(marks, "variant", order, align="left", x=alt.XValue(0), yOffset=-9),
        *labels(marks, "label", order, align="right", x=alt.XValue("width"), yOffset=-9),
    ]
    chart = alt.layer(*layers, data=values(slot("rows"))).properties(width="container")
    return to_specification(chart, slot("description"))


def baseline_line(x_axis: alt.X, order: alt.Y) -> alt.Chart:
    """Return the line at 1 in pieces, one per row at the height of its mark, not of its name."""
    pieces = alt.Chart(values(slot("baselines")))
    size: dict[str, Any] = {"size": BASELINE_HEIGHT, "thickness": 1.25, "opacity": 1}
    return pieces.mark_tick(style="baseline", yOffset=MARK_OFFSET, **size).encode(x_axis, order)


def ratio_marks(x_axis: alt.X, order: alt.Y) -> list[alt.Chart]:
    """Return a mark per row: filled, or for a tie hollow, with the page's colour inside."""
    common: dict[str, Any] = {"size": 95, "opacity": 1, "yOffset": MARK_OFFSET}
    position = (x_axis, order, precision_shape())
    full, ties = (alt.Chart().transform_filter(f"{sign}datum.tie") for sign in ("!", ""))
    tooltip = tooltips("speedup", "interval", "verdict")
    return [
        full.mark_point(filled=True, **common).encode(*position, engine_colour(), tooltip=tooltip),
        ties.mark_point(filled=True, style="mask", **common).encode(*position),
        ties.mark_point(strokeWidth=2, **common).encode(
            *position, engine_colour(), tooltip=tooltip
        ),
    ]
