"""The chart of trainings as a plain Vega-Lite specification: accuracy over time."""

from collections.abc import Sequence
from typing import Any

import altair as alt

from tightrope.charts import finished, labels, values

HEAD_ROOM = 1.3  # beyond the slowest training, for its name
Point = dict[str, Any]


def training_chart(points: Sequence[Point], *, description: str) -> dict[str, Any]:
    """Accuracy (percent) after each epoch over the seconds up to then, a line for each model.

    A point has model, epoch, seconds, accuracy, low and high (of the seeds), last (bool: the model
    is named there), and the text told for the tooltip. As wide as its container.
    """
    longest = max(point["seconds"] for point in points)
    scale = alt.Scale(domain=[0, longest * HEAD_ROOM], nice=False)
    across = alt.X("seconds:Q", scale=scale, axis=alt.Axis(grid=False))
    across.title = "time of training, s"
    ends = [point[end] for point in points for end in ("low", "high")]
    room = max(2.0, 0.1 * (max(ends) - min(ends)))
    limits = [max(0.0, min(ends) - room), min(100.0, max(ends) + room)]
    up = alt.Y("accuracy:Q", scale=alt.Scale(domain=limits, nice=False), title=None)
    low = alt.Y("low:Q", scale=up["scale"], title=None)
    told_as = {"model": "model", "epoch": "epoch", "told": "accuracy, %"}
    told = [alt.Tooltip(f"{name}:N", title=title) for name, title in told_as.items()]
    names = alt.Chart().transform_filter("datum.last")
    layers = [
        alt.Chart().mark_line(style="front").encode(across, up, alt.Detail("model:N")),
        alt.Chart().mark_rule(style="zero", opacity=0.6).encode(across, low, y2="high:Q"),
        alt.Chart()
        .mark_point(style="marked", filled=True, size=70, opacity=1)
        .encode(across, up, tooltip=told),
        *labels(names, "model", up, align="left", x=across, dx=8),
    ]
    chart = alt.layer(*layers, data=values(points)).properties(
        title="accuracy, %", width="container", height=240
    )
    return finished(chart, description)
