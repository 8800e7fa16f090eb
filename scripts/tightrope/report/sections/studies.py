"""Report sections on the studies: a table and a chart of the rows of each, from its columns."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from markupsafe import Markup

from tightrope.decide.result import Shape, StudyEntry
from tightrope.report.charts import heat, lines
from tightrope.report.sections.steadiness import Remark
from tightrope.report.style.numbers import (
    JOINED,
    TIMES,
    ends,
    milliseconds,
    percentage,
    shape_label,
    significant,
    whole,
)
from tightrope.report.tables import (
    cell,
    failures,
    grouped,
    number,
    provisional,
    value,
    variant,
    verdict,
    with_interval,
)
from tightrope.studies.study import Column, Heat, Lines, Study
from tightrope.studies.table import STUDIES
from tightrope.summary.document import Summary
from tightrope.variants import parse

Record = Mapping[str, Any]
# pixels of a heat map: of the names of its rows, and of a column with its text
NAMES_WIDTH, COLUMN_WIDTH = 165, 96
# formats of values by the unit of their column
UNITS: dict[str, Callable[[float], str | None]] = {
    "ms": milliseconds,
    "s": f"{{:g}}{JOINED}s".format,
    "ratio": f"{{:,.2f}}{TIMES}".format,
    "percent": percentage,
    "count": whole,
    "rough rate": partial(significant, digits=2),
}


def study_sections(summary: Summary, hosts: Mapping[str, str]) -> list[dict[str, Any]]:
    """Return a section per study that measured something, with an entry per model.

    `failed` is how many variants failed.
    """
    found = []
    for name, study in STUDIES.items():
        entries = summary.studies.get(name, [])
        models = grouped((one.model, one) for one in entries)
        if models:
            parts = [model_section(study, model, own, hosts) for model, own in models.items()]
            found.append({"study": study, "failed": failures(entries), "models": parts})
    return found


def model_section(
    study: Study, model: str, entries: Sequence[StudyEntry], hosts: Mapping[str, str]
) -> dict[str, Any]:
    """Return the rows of a model's variants, their figures, and what could not be measured.

    A row is its cells. A column without a value in any row is left out, and so are shapes that no
    inputs have in common. `sentences` are what stands nowhere else.
    """
    measured = [entry for entry in entries if entry.status == "ok"]
    rows = [(entry, row) for entry in measured for row in entry.rows]
    columns = {
        name: column
        for name, column in study.columns.items()
        if any(row[name] is not None for _, row in rows)
    }
    shaped = any(entry.shape for entry in measured)
    titles = [f"{'#' * (one.unit != 'text')}{one.title}" for one in columns.values()]
    titles = ["Variant", *["Shape"] * shaped, *titles, "#Calls", "Note"]
    # a heat map per variant, or lines of all of them
    drawn = []
    if isinstance(study.chart, Heat):
        drawn = [heat_figure(study, study.chart, entry, hosts) for entry in measured]
    elif isinstance(study.chart, Lines) and rows:
        drawn = [lines_figure(study, study.chart, model, measured)]
    words = [] if drawn or study.remark else [word for one in measured for word in one.words]
    return {
        "name": model,
        "titles": [title.replace(", ", ",|") for title in titles],
        "rows": [
            Markup().join(
                [
                    variant(entry.variant, hosts.get(entry.host)),
                    *[cell(shape_label(shape_of(entry)))] * shaped,
                    *(shown(column, row[name], row) for name, column in columns.items()),
                    number(whole(row["calls"]), why_none(row)),
                    cell(why_none(row) or ""),
                ]
            )
            for entry, row in rows
        ],
        "figures": drawn,
        "sentences": list(dict.fromkeys(words)),
        "entries": entries,
    }


def shape_of(entry: StudyEntry) -> Shape:
    """Return the sizes that all inputs have in common, of batch 0 where that differs."""
    return Shape(**{"batch": 0, **entry.shape})


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
    return None if found is None else UNITS.get(unit, significant)(found)


def span(unit: str, estimate: Record) -> str | None:
    """Format the interval of an estimate in the unit of a column."""
    if unit == "ratio":
        return f"{estimate['low']:,.2f} to {estimate['high']:,.2f}"
    factor = 1000 if unit == "ms" else 1
    return ends(factor * estimate["low"], factor * estimate["high"])


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
    columns = sorted({mark[look.x] for mark in marks})
    description = f"{study.title} of {entry.variant}. {' '.join(entry.words)}"
    place = filter(None, (shape_label(shape_of(entry)), hosts.get(entry.host)))
    return {
        "name": entry.variant,
        "quiet": " on ".join(place),
        "sentences": entry.words,
        "least_width": NAMES_WIDTH + COLUMN_WIDTH * len(columns),
        "chart": heat(look.x, look.y, marks, columns, description),
    }


def lines_figure(
    study: Study, look: Lines, model: str, measured: Sequence[StudyEntry]
) -> dict[str, Any]:
    """Return a line per variant, with the interval of each point that has one."""
    x_title, (y_title, unit, *_) = study.columns[look.x].title, study.columns[look.y]
    factor, points = 1000 if unit == "ms" else 1, []
    for entry, row in [(one, row) for one in measured for row in one.rows]:
        found = row[look.y]
        known = found if isinstance(found, dict) else {"value": found} if found is not None else {}
        place = {"variant": entry.variant, "engine": parse(entry.variant).engine, "x": row[look.x]}
        ends = {end: factor * one for end, one in known.items()}
        points += [{**place, **ends}] if known else []
    description = f"{y_title} by {x_title}, {model}"
    return {
        "name": None,
        "quiet": description,
        "sentences": [],
        "least_width": NAMES_WIDTH,
        "chart": lines(points, x_title, y_title, description),
    }


def study_remarks(summary: Summary) -> dict[tuple[Any, ...], list[Remark]]:
    """Return remarks on rows of latency by model, variant, host and shape.

    They are what studies with a `remark` found.
    """
    return grouped(
        ((one.model, one.variant, one.host, shape_of(one)), Remark(study.remark, one.words))
        for name, study in STUDIES.items()
        for one in summary.studies.get(name, [])
        if study.remark and one.words
    )
