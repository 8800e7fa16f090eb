"""The page of a history: a chart per model, host and shape, and its steps in a table."""

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import altair as alt

from tightrope.compare.history import Point, Series, what_changed
from tightrope.compare.page import page_of
from tightrope.compare.read import Report, Shape
from tightrope.compare.text import Quoted, Section, Table, Words, shape_words, value_words
from tightrope.report.charts.parts import to_specification, values
from tightrope.report.style.numbers import TIMES, moment
from tightrope.statistics import Z

Group = tuple[str, str, Shape]


def trend_page(folder: Path, reports: Sequence[Report], found: Sequence[Series]) -> str:
    """Return the page."""
    groups: dict[Group, list[Series]] = {}
    for one in found:
        groups.setdefault((one.row.model, one.host, one.row.shape), []).append(one)
    heading = [
        Words(f"{len(reports)} reports in ", Quoted(str(folder))),
        Words("from ", Quoted(moment(reports[0].created) or "")),
        Words("to ", Quoted(moment(reports[-1].created) or "")),
    ]
    charts = {f"trend-{number}": chart(own) for number, own in enumerate(groups.values())}
    sections = [trend_section(reports, group, own) for group, own in groups.items()]
    if not sections:
        sections = [Section("Nothing to draw", [Words("no report has a recommended variant")])]
    return page_of("trend.html", reports[-1].document, heading, sections, charts)


def trend_section(reports: Sequence[Report], group: Group, own: Sequence[Series]) -> Section:
    """Return the title of a group and its steps."""
    model, host, shape = group
    hosts = {str(result.get("host")) for one in reports for result in one.results.values()}
    lines = [Words("model ", Quoted(model), f" at {shape_words(shape)}")]
    lines += [Words("host ", Quoted(host))] if len(hosts) > 1 else []
    rows = [step_row(reports, one, step) for one in own for step in one.steps]
    judged = max(len(one.judged) for one in own)
    if not rows:
        lines.append(Words(f"no step in up to {judged} judged measurements of a variant"))
        return Section(f"{model} at {shape_words(shape)}", lines)
    header = ("variant", "since", "time", "what changed")
    return Section(f"{model} at {shape_words(shape)}", lines, Table(header, rows))


def step_row(reports: Sequence[Report], one: Series, step: Any) -> list[Words]:
    """Return the cells of a step."""
    after = reports[one.judged[step.place].report]
    time = f"{step.ratio:.3f}{TIMES} ({step.low:.3f} to {step.high:.3f})"
    causes = what_changed(reports, one, step)
    return [
        Words(Quoted(one.row.variant)),
        Words(Quoted(moment(after.created) or "")),
        Words(time),
        Words(Quoted(value_words(causes))) if causes else Words("nothing that the summaries hold"),
    ]


def chart(own: Sequence[Series]) -> dict[str, Any]:
    """Return the latency of variants over time in milliseconds, with 95 % intervals and steps."""
    rows = [row(one, point) for one in own for point in one.points]
    lines = [
        {"at": one.judged[step.place].at.isoformat(), "variant": one.row.variant}
        for one in own
        for step in one.steps
    ]
    colour = alt.Color("variant:N", legend=alt.Legend(orient="bottom", title=None, columns=1))
    at = alt.X("at:T", title=None, axis=alt.Axis(format="%Y-%m-%d", labelOverlap=True))
    ms = alt.Y("ms:Q", title=None, scale=alt.Scale(zero=False))
    tips = [alt.Tooltip(f"{name}:N", title=name) for name in ("variant", "time", "latency")]
    layers = [
        alt.Chart().mark_rule().encode(at, alt.Y("low:Q"), alt.Y2("high:Q"), color=colour),
        alt.Chart().mark_line(strokeWidth=1).encode(at, ms, color=colour),
        alt.Chart().mark_point(filled=True, size=40).encode(at, ms, color=colour, tooltip=tips),
        alt.Chart(values(lines)).mark_rule(style="edge").encode(at),
    ]
    drawn = alt.layer(*layers, data=values(rows)).properties(
        title="latency, ms; dashed: a step", width="container", height=220
    )
    names = ", ".join(one.row.variant for one in own)
    return to_specification(drawn, f"latency in milliseconds over time of {names}")


def row(one: Series, point: Point) -> dict[str, Any]:
    """Return a point of the chart; its interval is that of the speed-up."""
    error = point.log.error if point.log else 0.0
    low, high = (1e3 * point.seconds * math.exp(side * Z * error) for side in (-1, 1))
    return {
        "variant": one.row.variant,
        "at": point.at.isoformat(),
        "time": moment(point.at.isoformat()),
        "ms": 1e3 * point.seconds,
        "low": low,
        "high": high,
        "latency": f"{1e3 * point.seconds:.3g} ms" + ("" if point.log else ", not judged"),
    }
