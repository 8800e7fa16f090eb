"""Report sections on the studies: a table and a chart of the rows of each, from its columns."""

from collections.abc import Mapping, Sequence
from typing import Any

from markupsafe import Markup

from tightrope.report.charts import (
    ENGINE,
    Part,
    chart,
    interval,
    layer,
    log_axis,
    nominal,
    ordinal,
    quantity,
    tooltips,
)
from tightrope.report.sections.decision import not_run
from tightrope.report.sections.steadiness import Remark
from tightrope.report.style.numbers import (
    JOINED,
    TIMES,
    ends,
    milliseconds,
    percentage,
    shape_label,
    shape_of,
    significant,
    whole,
)
from tightrope.report.tables import cell, number, provisional, value, verdict, with_interval
from tightrope.studies.study import Column, Heat, Lines, Study
from tightrope.studies.table import STUDIES
from tightrope.summary.document import Summary
from tightrope.summary.measured import StudyEntry
from tightrope.variants import parse

Record = Mapping[str, Any]
# pixels of a heat map: of the names of its rows, of a column with its text, and of a row
NAMES_WIDTH, COLUMN_WIDTH, ROW_HEIGHT = 165, 96, 46
LINES_HEIGHT = 220


def study_sections(summary: Summary, hosts: Mapping[str, str]) -> list[dict[str, Any]]:
    """Return a section per study that measured something, with an entry per model.

    `failed` is how many variants failed; `link` is the title in the page's list of sections.
    """
    found = []
    for name, study in STUDIES.items():
        entries = summary.studies.get(name, [])
        models = dict.fromkeys(entry.model for entry in entries)
        if entries:
            own = {one: [entry for entry in entries if entry.model == one] for one in models}
            found.append(
                {
                    "study": study,
                    "failed": sum(entry.status == "failed" for entry in entries),
                    "models": [model_section(study, one, own[one], hosts) for one in models],
                }
            )
    return found


def model_section(
    study: Study, model: str, entries: Sequence[StudyEntry], hosts: Mapping[str, str]
) -> dict[str, Any]:
    """Return the rows of a model's variants, their figures, and what could not be measured.

    A column without a value in any row is left out. `sentences` are what stands nowhere else.
    """
    measured = [entry for entry in entries if entry.status == "ok"]
    known = [row for entry in measured for row in entry.rows]
    columns = {
        name: column
        for name, column in study.columns.items()
        if any(row[name] is not None for row in known)
    }
    titles = [f"#{one.title}" if one.unit != "text" else one.title for one in columns.values()]
    rows = [
        {"variant": entry.variant, "host": hosts.get(entry.host), "cells": cells}
        for entry in measured
        for cells in cells_of(columns, entry)
    ]
    drawn = figures(study, model, measured, hosts)
    words = [] if drawn or study.remark else [word for one in measured for word in one.words]
    return {
        "name": model,
        "titles": ["Variant", "Shape", *titles, "#Calls", "Note"],
        "rows": rows,
        "figures": drawn,
        "sentences": list(dict.fromkeys(words)),
        "not_run": not_run(entries),
    }


def cells_of(columns: Mapping[str, Column], entry: StudyEntry) -> list[Markup]:
    """Return the cells of each row of an entry, after the variant's."""
    shape = cell(shape_label(shape_of(entry.shape)))
    return [
        Markup().join(
            [
                shape,
                *(shown(column, row[name], row) for name, column in columns.items()),
                number(whole(row["calls"]), why_none(row)),
                cell(why_none(row) or ""),
            ]
        )
        for row in entry.rows
    ]


def why_none(row: Record) -> str | None:
    """Return why a row has no numbers, or why they are provisional."""
    found: str | None = row["disturbed"] or row["reason"]
    return found


def shown(column: Column, found: Any, row: Record) -> Markup:
    """Return the cell of a value, with its interval and verdict where it has them."""
    why = why_none(row) or "not recorded"
    if column.unit == "text":
        return cell(found or "")
    if not isinstance(found, dict):
        return number(in_unit(column.unit, found), why)
    text = with_interval(in_unit(column.unit, found["value"]), span(column.unit, found))
    slower = column.slower is not None and found["low"] > column.slower
    said = row[column.verdict] if column.verdict else "slower" if slower else ""
    word = verdict(said if not row["provisional"] else "")
    return Markup('<td class="number">{} {}{}</td>').format(
        value(text, why), word, provisional(row["provisional"])
    )


def in_unit(unit: str, found: float | None) -> str | None:
    """Format a value in the unit of a column, None without one."""
    if found is None:
        return None
    if unit == "ms":
        return milliseconds(found)
    if unit == "s":
        return f"{found:g}{JOINED}s"
    if unit == "ratio":
        return f"{found:,.2f}{TIMES}"
    if unit == "percent":
        return percentage(found)
    if unit == "rough rate":
        return significant(found, 2)
    return whole(found) if unit == "count" else significant(found)


def span(unit: str, estimate: Record) -> str | None:
    """Format the interval of an estimate in the unit of a column."""
    if unit == "ratio":
        return f"{estimate['low']:,.2f} to {estimate['high']:,.2f}"
    factor = 1000 if unit == "ms" else 1
    return ends(factor * estimate["low"], factor * estimate["high"])


def figures(
    study: Study, model: str, measured: Sequence[StudyEntry], hosts: Mapping[str, str]
) -> list[dict[str, Any]]:
    """Return the figures of a study: a heat map per variant, or lines of all of them."""
    if isinstance(study.chart, Heat):
        return [heat_figure(study, study.chart, entry, hosts) for entry in measured]
    if isinstance(study.chart, Lines) and any(entry.rows for entry in measured):
        return [lines_figure(study, study.chart, model, measured)]
    return []


def heat_figure(
    study: Study, look: Heat, entry: StudyEntry, hosts: Mapping[str, str]
) -> dict[str, Any]:
    """Return the heat map of a variant with the words on all of its rows."""
    units = {name: column.unit for name, column in study.columns.items()}
    title, _, unit = study.columns[look.below].title.partition(", ")
    marks = []
    for row in entry.rows:
        estimate, below = row[look.value], in_unit(units[look.below], row[look.below])
        text = estimate and in_unit(units[look.value], estimate["value"])
        word = "skipped" if row.get("skipped") else "failed" if row["reason"] else "disturbed"
        marks.append(
            {
                **{name: row[name] for name in (look.x, look.y)},
                "value": estimate and estimate["value"],
                "shown": text or word,
                "interval": estimate and span(units[look.value], estimate),
                "below": JOINED.join(filter(None, (title, below, unit))) if below else "",
                "calls": whole(row["calls"]),
                "note": why_none(row),
                "best": bool(row.get("best")),
            }
        )
    description = f"{study.title} of {entry.variant}. {' '.join(entry.words)}"
    columns = sorted({mark[look.x] for mark in marks})
    return {
        "name": entry.variant,
        "quiet": " on ".join(
            filter(None, (shape_label(shape_of(entry.shape)), hosts.get(entry.host)))
        ),
        "sentences": entry.words,
        "description": description,
        "least_width": NAMES_WIDTH + COLUMN_WIDTH * len(columns),
        "chart": heat(look, marks, columns, description),
    }


def heat(look: Heat, marks: Sequence[Part], columns: Sequence[Any], description: str) -> Part:
    """Chart marks with `value` (None without a number), `shown` and `below`, texts of a cell."""
    rows = list(dict.fromkeys(mark[look.y] for mark in marks))
    still, wide = {"labelAngle": 0, "grid": False}, {"labelLimit": 220, "grid": False}
    scale = {"range": "heatmap", "zero": False}
    place: Part = {
        "x": ordinal(look.x, sort=[*columns], title=look.x, axis=still),
        "y": ordinal(look.y, sort=rows, title=None, axis=wide),
        "tooltip": tooltips(look.y, look.x, "shown", "interval", "below", "calls", "note"),
    }
    known = "isValid(datum.value)"
    colour = quantity("value", scale=scale, legend=None)
    layers = [
        layer("rect", {}, where=known, **place, color=colour),
        layer("rect", {"style": "mask"}, where=f"!{known}", **place),
        layer("rect", {"style": "ring", "fillOpacity": 0}, where="datum.best", **place),
        layer("text", {"style": "label", "dy": -8}, **place, text=nominal("shown")),
        layer("text", {"style": "label", "dy": 9}, **place, text=nominal("below")),
    ]
    return chart(layers, marks, description, height=ROW_HEIGHT * len(rows))


def lines_figure(
    study: Study, look: Lines, model: str, measured: Sequence[StudyEntry]
) -> dict[str, Any]:
    """Return a line per variant, with the interval of each point that has one."""
    units = {name: column.unit for name, column in study.columns.items()}
    factor = 1000 if units[look.y] == "ms" else 1
    points = []
    for entry in measured:
        for row in entry.rows:
            found = row[look.y]
            if found is not None:
                known = found if isinstance(found, dict) else {"value": found}
                points.append(
                    {
                        "variant": entry.variant,
                        "engine": parse(entry.variant).engine,
                        "x": row[look.x],
                        **{end: factor * one for end, one in known.items()},
                    }
                )
    titles = {name: column.title for name, column in study.columns.items()}
    axis = log_axis(points, ("value", "low", "high"), "value", title=titles[look.y])
    place = {"x": log_axis(points, ("x",), "x", title=titles[look.x])}
    colour = {"color": ENGINE, "detail": nominal("variant")}
    told = tooltips("variant", x=titles[look.x], value=titles[look.y])
    layers = [
        layer("line", {}, y=axis, **place, **colour),
        layer("point", {"filled": True, "opacity": 1}, y=axis, tooltip=told, **place, **colour),
    ]
    if any("low" in point for point in points):
        layers.insert(0, layer("rule", {}, **interval(axis, "low", "high", "y", **place, **colour)))
    description = f"{titles[look.y]} by {titles[look.x]}, {model}"
    return {
        "name": None,
        "quiet": description,
        "sentences": [],
        "description": description,
        "least_width": NAMES_WIDTH,
        "chart": chart(layers, points, description, height=LINES_HEIGHT),
    }


def study_remarks(summary: Summary) -> dict[tuple[Any, ...], list[Remark]]:
    """Return remarks on rows of latency by model, variant, host and shape.

    They are what studies with a `remark` found.
    """
    found: dict[tuple[Any, ...], list[Remark]] = {}
    for name, study in STUDIES.items():
        for entry in summary.studies.get(name, []) if study.remark else ():
            place = entry.model, entry.variant, entry.host, shape_of(entry.shape)
            if entry.words:
                found.setdefault(place, []).append(Remark(study.remark, entry.words))
    return found
