"""Figures of speed-ups: a chart with description and table per device and shape."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from tightrope.report.charts.speedups import speedup_chart
from tightrope.report.sections.figures import join_title, row_at, shapes_in, without_records
from tightrope.report.style.numbers import is_positive, ratio, ratio_interval, shape_label
from tightrope.variants import at_place

Record = Mapping[str, Any]


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
