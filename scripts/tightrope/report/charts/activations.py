"""Chart of activations as a Vega-Lite specification: speed-ups, with accuracy in the names."""

from collections.abc import Sequence
from typing import Any

import altair as alt

from tightrope.report.charts.parts import (
    clone,
    engine_colour,
    labels,
    log_axis,
    precision_shape,
    to_specification,
    tooltips,
    values,
)

LINE = 18  # pixels per variant
NAME = 26  # pixels above them, for the activation's name


def activation_chart(
    marks: Sequence[dict[str, Any]],
    names: Sequence[dict[str, Any]],
    variants: Sequence[str],
    *,
    description: str,
) -> dict[str, Any]:
    """Chart speed-ups over the reference's activation (logarithmic), a band per entry of `names`.

    A name has model and name (the text of its band); bands keep the given order, with a line per
    entry of `variants` in each. A mark has model, activation, variant, engine, precision, ratio,
    low, high, tie (bool), and the tooltip texts speedup, interval and verdict. As wide as its
    container.
    """
    title = "speed-up over the reference's activation (logarithmic)"
    x_axis = log_axis([*marks, {"ratio": 1}], ("low", "ratio", "high"), "ratio", title=title)
    height = NAME + LINE * len(variants)
    order = [name["model"] for name in names]
    band = alt.Y("model:N", sort=order, axis=None, scale=alt.Scale(domain=order, padding=0))
    lines = alt.Scale(domain=list(variants), rangeMin=NAME, rangeMax=height)
    base, position = alt.Chart(), (band, alt.YOffset("variant:N", scale=lines, sort=None))
    point = base.mark_point(filled=True, size=85, opacity=1)
    ties = base.transform_filter("datum.tie")
    tooltip = [alt.Tooltip("activation:N"), *tooltips("speedup", "interval", "verdict")]
    layers = [
        alt.Chart(values([{"ratio": 1}])).mark_rule(style="budget").encode(x_axis),
        base.mark_rule(strokeWidth=2, opacity=0.75).encode(
            *position, engine_colour(), x=clone(x_axis, "low"), x2=alt.X2("high:Q")
        ),
        point.encode(x_axis, *position, precision_shape(), engine_colour(), tooltip=tooltip),
        ties.mark_point(filled=True, style="mask", size=30, opacity=1).encode(
            x_axis, *position, precision_shape()
        ),
    ]
    first, *last = bands(names, band, height)
    chart = alt.layer(first, *layers, *last, data=values(marks)).properties(
        width="container", height=height * len(names)
    )
    return to_specification(chart, description)


def bands(names: Sequence[dict[str, Any]], band: alt.Y, height: int) -> list[alt.Chart]:
    """Return the layers of the bands, `height` pixels each: a line above each, then its name."""
    chart = alt.Chart(values(names))
    line = chart.mark_rule(style="row", yOffset=-height / 2).encode(band)
    position = {"align": "left", "x": alt.value(0), "yOffset": NAME / 2 - height / 2}
    return [line, *labels(chart, "name", band, **position)]
