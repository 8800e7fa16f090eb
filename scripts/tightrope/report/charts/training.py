"""Chart of trainings as a Vega-Lite specification: accuracy over time."""

from collections.abc import Sequence
from operator import itemgetter
from typing import Any

import altair as alt

from tightrope.report.charts.parts import labels, to_specification, values

HEAD_ROOM = 0.03  # axis room per letter of a name, as a share of the slowest training's time
HEIGHT = 240  # pixels
LINE = 16  # pixels from one name to the next
NEAR = 0.25  # share of the longest training; names closer than this would overlap
Point = dict[str, Any]


def training_chart(points: Sequence[Point], *, description: str) -> dict[str, Any]:
    """Chart accuracy (percent) after each epoch over the elapsed seconds, a line per model.

    A point has model, epoch, seconds, accuracy, low and high (over the seeds), last (bool: the
    model is named at this point), and the tooltip text `told`. As wide as its container.
    """
    slowest = max(point["seconds"] for point in points)
    letters = max(len(point["model"]) for point in points)
    scale = alt.Scale(domain=[0, slowest * (1 + HEAD_ROOM * min(letters, 30))], nice=False)
    axis = alt.Axis(grid=False)
    x_axis = alt.X("seconds:Q", scale=scale, axis=axis, title="time of training, s")
    ends = [point[end] for point in points for end in ("low", "high")]
    room = max(2.0, 0.1 * (max(ends) - min(ends)))
    limits = [max(0.0, min(ends) - room), min(100.0, max(ends) + room)]
    y_axis = alt.Y("accuracy:Q", scale=alt.Scale(domain=limits, nice=False), title=None)
    low = alt.Y("low:Q", scale=y_axis["scale"], title=None)
    titles = {"model": "model", "epoch": "epoch", "told": "accuracy, %"}
    tooltip = [alt.Tooltip(f"{name}:N", title=title) for name, title in titles.items()]
    names = alt.Chart(values(place_names(points, line=LINE / HEIGHT * (limits[1] - limits[0]))))
    name_axis = alt.Y("name_at:Q", scale=y_axis["scale"], title=None)
    layers = [
        alt.Chart().mark_line(style="front").encode(x_axis, y_axis, alt.Detail("model:N")),
        alt.Chart().mark_rule(style="zero", opacity=0.6).encode(x_axis, low, y2=alt.Y2("high:Q")),
        alt.Chart()
        .mark_point(style="marked", filled=True, size=70, opacity=1)
        .encode(x_axis, y_axis, tooltip=tooltip),
        *labels(names, "model", name_axis, align="left", x=x_axis, dx=8),
    ]
    chart = alt.layer(*layers, data=values(points)).properties(
        title="accuracy, %", width="container", height=HEIGHT
    )
    return to_specification(chart, description)


def place_names(points: Sequence[Point], *, line: float) -> list[Point]:
    """Return the named points; `name_at` is the accuracy at which the name is drawn.

    Names of trainings that end at about the same time are `line` (percent) apart.
    """
    near = NEAR * max(point["seconds"] for point in points)
    placed: list[Point] = []
    for point in sorted((other for other in points if other["last"]), key=itemgetter("accuracy")):
        neighbours = [other for other in placed if abs(other["seconds"] - point["seconds"]) < near]
        name_at = max([point["accuracy"], *(other["name_at"] + line for other in neighbours)])
        placed.append({**point, "name_at": name_at})
    return placed
