"""Chart of trainings as a Vega-Lite specification: accuracy over time."""

from collections.abc import Sequence
from operator import itemgetter
from typing import Any

import altair as alt

from tightrope.report.charts.parts import finished, labels, values

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
    longest = max(point["seconds"] for point in points)
    letters = max(len(point["model"]) for point in points)
    scale = alt.Scale(domain=[0, longest * (1 + HEAD_ROOM * min(letters, 30))], nice=False)
    axis = alt.Axis(grid=False)
    across = alt.X("seconds:Q", scale=scale, axis=axis, title="time of training, s")
    ends = [point[end] for point in points for end in ("low", "high")]
    room = max(2.0, 0.1 * (max(ends) - min(ends)))
    limits = [max(0.0, min(ends) - room), min(100.0, max(ends) + room)]
    up = alt.Y("accuracy:Q", scale=alt.Scale(domain=limits, nice=False), title=None)
    low = alt.Y("low:Q", scale=up["scale"], title=None)
    told_as = {"model": "model", "epoch": "epoch", "told": "accuracy, %"}
    told = [alt.Tooltip(f"{name}:N", title=title) for name, title in told_as.items()]
    names = alt.Chart(values(named(points, line=LINE / HEIGHT * (limits[1] - limits[0]))))
    at = alt.Y("name_at:Q", scale=up["scale"], title=None)
    layers = [
        alt.Chart().mark_line(style="front").encode(across, up, alt.Detail("model:N")),
        alt.Chart().mark_rule(style="zero", opacity=0.6).encode(across, low, y2="high:Q"),
        alt.Chart()
        .mark_point(style="marked", filled=True, size=70, opacity=1)
        .encode(across, up, tooltip=told),
        *labels(names, "model", at, align="left", x=across, dx=8),
    ]
    chart = alt.layer(*layers, data=values(points)).properties(
        title="accuracy, %", width="container", height=HEIGHT
    )
    return finished(chart, description)


def named(points: Sequence[Point], *, line: float) -> list[Point]:
    """Return the named points; `name_at` is the accuracy at which the name is drawn.

    Names of trainings that end at about the same time are `line` (percent) apart.
    """
    near = NEAR * max(point["seconds"] for point in points)
    found: list[Point] = []
    for point in sorted((one for one in points if one["last"]), key=itemgetter("accuracy")):
        beside = [one for one in found if abs(one["seconds"] - point["seconds"]) < near]
        at = max([point["accuracy"], *(one["name_at"] + line for one in beside)])
        found.append({**point, "name_at": at})
    return found
