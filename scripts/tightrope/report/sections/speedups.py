"""Figures of a model for each host: times of two hosts are never in one figure.

The figure of speed-ups is a chart with description and table per device and shape.
"""

from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import Any

import altair as alt
from altair.utils.schemapi import debug_mode

from tightrope.report.charts import (
    clone,
    engine_colour,
    filled,
    labels,
    log_axis_of,
    log_range,
    precision_shape,
    slot,
    to_specification,
    tooltips,
    values,
)
from tightrope.report.sections.figures import (
    join_title,
    row_at,
    shapes_in,
    trade_offs,
    without_records,
)
from tightrope.report.style.numbers import is_positive, ratio, ratio_interval, shape_label
from tightrope.variants import at_place

Record = Mapping[str, Any]
ROW_HEIGHT = 38  # pixels for the name and the mark below it
MARK_OFFSET = 8
BASELINE_HEIGHT = 18  # of the baseline's line in a row, which ends below the name


def figures_by_host(
    measured: Iterable[Record],
    baselines: Mapping[str, str],
    picks: Iterable[Record],
    hosts: Mapping[str, str],
    *,
    budget: float | None,
) -> dict[str, Any]:
    """Return the hosts of the results, and the figures of each host."""
    deploy: dict[Any, set[str]] = {}
    equals: dict[Any, set[str]] = {}
    for pick in picks:
        deploy.setdefault(pick["shape"], set()).add(pick["variant"])
        equals.setdefault(pick["shape"], set()).update([pick["variant"], *pick["equal"]])
    by_host: dict[Any, list[Record]] = {}
    for result in measured:
        by_host.setdefault(result.get("host"), []).append(result)
    return {
        "hosts": list(by_host),
        "trade_offs": [
            figure
            for host, group in by_host.items()
            for figure in trade_offs(group, baselines, deploy, equals, budget, host=hosts.get(host))
        ],
        "speedups": [
            figure
            for host, group in by_host.items()
            for figure in speedups(group, baselines, host=hosts.get(host))
        ],
    }


def speedups(
    results: Sequence[Record], baselines: Mapping[str, str], *, host: str | None = None
) -> list[dict[str, Any]]:
    """Return a figure per device and shape: speed-ups of one model's results on one host.

    `host` is named in the titles. A figure has title, baseline, description, chart and rows
    (fastest first). All shapes of a device have the same axis range, so that they can be compared.
    """
    figures = []
    devices = sorted({str(result.get("device")) for result in results})
    for device in devices:
        group = [result for result in results if str(result.get("device")) == device]
        by_shape = {shape: speedup_rows(group, shape) for shape in shapes_in(group)}
        all_rows = [row for rows in by_shape.values() for row in rows]
        extent = [row[end] for row in all_rows for end in ("low", "high")]
        for shape, rows in by_shape.items():
            if not rows:
                continue
            title = join_title(shape_label(shape), device if len(devices) > 1 else None, host)
            description = describe_speedups(title, rows)
            marks = [without_records(row) for row in rows]
            figures.append(
                {
                    "title": title,
                    "baseline": at_place(baselines, device, group[0].get("host")),
                    "description": description,
                    "rows": rows,
                    "chart": speedup_chart(marks, extent=extent, description=description),
                }
            )
    return figures


def speedup_rows(results: Iterable[Record], shape: Any) -> list[dict[str, Any]]:
    """Return the variants with a speed-up over the baseline at a shape, fastest first."""
    rows = []
    for result in results:
        row = row_at(result, shape)
        speedup = (row or {}).get("speedup") or {}
        value = speedup.get("ratio")
        if not is_positive(value):
            continue
        tie = speedup.get("verdict") == "tie"
        ends = [speedup.get(end) for end in ("low", "high")]
        low, high = (end if is_positive(end) else value for end in ends)
        rows.append(
            {
                "variant": result["variant"],
                "engine": result.get("engine"),
                "precision": result.get("precision"),
                "ratio": value,
                "low": low,
                "high": high,
                "tie": tie,
                "label": f"{'tie ' if tie else ''}{ratio(speedup)}",
                "speedup": ratio(speedup),
                "interval": ratio_interval(speedup),
                "verdict": speedup.get("verdict"),
                "row": row,
            }
        )
    return sorted(rows, key=lambda row: -row["ratio"])


def describe_speedups(title: str, rows: Sequence[Record]) -> str:
    """Describe the chart in words."""
    ties = sum(row["tie"] for row in rows)
    first = rows[0]
    return (
        f"Speed-ups of {len(rows)} variants over the baseline at {title}. The fastest is "
        f"{first['variant']} with {first['label']} ({first['interval'] or 'no interval'}); "
        f"{ties} {'is a tie' if ties == 1 else 'are ties'}."
    )


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
