"""Report section on models that differ in their activation: accuracy and speed."""

from collections.abc import Mapping, Sequence
from typing import Any

from tightrope.report.charts import (
    ENGINE,
    PRECISION,
    Part,
    chart,
    interval,
    labels,
    layer,
    line_at,
    log_axis,
    nominal,
    tooltips,
)
from tightrope.report.sections.figures import join_title, row_at, speedup_mark
from tightrope.report.sections.training import format_seconds
from tightrope.report.style.numbers import (
    is_positive,
    percentage,
    points,
    points_interval,
    shape_label,
    shape_of,
    sizes,
)
from tightrope.variants import at_place, parse

Record = Mapping[str, Any]
Shape = tuple[tuple[str, int], ...]
# reference, host, device
GroupKey = tuple[str, str, str]
Columns = Sequence[tuple[Shape, str]]
LINE = 18  # pixels per variant
NAME = 26  # pixels above them, for the activation's name


def activations_section(summary: Record, hosts: Mapping[str, str]) -> list[dict[str, Any]]:
    """Return a table with a figure per shape, for each reference, host and device.

    `hosts` are names by fingerprint, empty for a single host.
    """
    groups: dict[Any, list[Record]] = {}
    for entry in summary.get("activations") or ():
        key = tuple(entry.get(name) for name in ("reference", "host", "device"))
        groups.setdefault(key, []).append(entry)
    return [table(summary, key, group, hosts) for key, group in groups.items()]


def table(
    summary: Record, key: GroupKey, group: Sequence[Record], hosts: Mapping[str, str]
) -> dict[str, Any]:
    """Return one table; `columns` are (shape, variant), each of `rows` has a cell per column.

    The first row is the reference with its own results; the other models follow by accuracy. `key`
    holds reference, host and device.
    """
    reference, host_key, device = key
    timed = [row for entry in group for row in entry.get("latency") or ()]
    shapes = sorted({shape_of(row) for row in timed if shape_of(row)}, key=sizes)
    variants = list(dict.fromkeys(row["variant"] for row in timed))
    columns = [(shape, variant) for shape in shapes for variant in variants]
    host = hosts.get(host_key)
    compared = [
        row_of(
            *(summary, entry["model"], host_key, entry["accuracy"] or {}),
            cells=[cell_of(entry, shape, variant) for shape, variant in columns],
        )
        for entry in sorted(group, key=lambda entry: -(entry["accuracy"] or {}).get("top1", 0))
    ]
    rows = [reference_row(summary, key, columns), *compared]
    figures = [figure_of(rows, shape, variants, index, host) for index, shape in enumerate(shapes)]
    return {
        "reference": reference,
        "activation": rows[0]["activation"],
        "host": host,
        "shapes": [(shape_label(shape), len(variants)) for shape in shapes],
        "variants": [variant for _, variant in columns],
        "rows": rows,
        "trained": any(row["epoch_words"] for row in rows),
        "device_memory": device == "cuda",
        "figures": [figure for figure in figures if figure],
    }


def reference_row(summary: Record, key: GroupKey, columns: Columns) -> dict[str, Any]:
    """Return the row of the reference model, with its own times."""
    model, host, device = key
    results = {
        result["variant"]: result
        for result in summary.get("results") or ()
        if (result.get("model"), result.get("host")) == (model, host)
    }
    baseline = at_place(model_entry(summary, model).get("baselines") or {}, device, host)
    accuracy = (results.get(baseline) or {}).get("accuracy") or {}
    rows = (row_at(results.get(variant) or {}, shape) or {} for shape, variant in columns)
    times = [{"paired_s": row.get("paired_s")} for row in rows]
    row = row_of(summary, model, host, accuracy, cells=times)
    return {**row, "plain": True, "change": None, "interval": None}


def row_of(
    summary: Record, model: str, host: str, accuracy: Record, *, cells: list[dict[str, Any]]
) -> dict[str, Any]:
    """Return a row: activation, accuracy, training time and memory on `host`, a cell per column."""
    key = (model, host, "ok")
    measured = {
        (one["model"], one["host"], one["status"]): one for one in summary.get("training") or ()
    }
    trained: Record = measured.get(key) or {}
    on_gpu = trained.get("device") == "cuda"
    return {
        "model": model,
        "activation": model_entry(summary, model).get("activation") or model,
        "plain": False,
        "top1": percentage(accuracy.get("top1"), accuracy.get("samples")),
        "change": points(accuracy.get("delta"), accuracy.get("samples")),
        "interval": points_interval(accuracy),
        "cells": cells,
        "epoch_words": format_seconds(trained.get("epoch_s")),
        "memory_bytes": trained.get("peak_device_bytes" if on_gpu else "peak_rss_bytes"),
    }


def model_entry(summary: Record, model: str) -> Record:
    """Return the summary's entry of a model, empty without one."""
    return (summary.get("models") or {}).get(model) or {}


def cell_of(entry: Record, shape: Shape, variant: str) -> dict[str, Any]:
    """Return the speed-up of a variant at a shape over the reference; `reason` if there is none."""
    rows = [row for row in entry.get("latency") or () if row["variant"] == variant]
    row = next((row for row in rows if shape_of(row) == shape), rows[0] if rows else {})
    speedup = row.get("speedup") or {}
    return {
        "speedup": speedup if is_positive(speedup.get("ratio")) else None,
        "noisy": bool(row.get("noisy")),
        "reason": row.get("reason") or "not measured",
    }


def figure_of(
    rows: Sequence[Record], shape: Shape, variants: Sequence[str], index: int, host: str | None
) -> dict[str, Any] | None:
    """Return the chart of a shape with its description, None if nothing was timed at it."""
    first = index * len(variants)
    marks = [
        mark_of(row, variant, cell["speedup"])
        for row in rows[1:]
        for variant, cell in zip(variants, row["cells"][first:], strict=False)
        if cell["speedup"]
    ]
    if not marks:
        return None
    title = join_title(shape_label(shape), host)
    speedups = "; ".join(
        f"{mark['activation']} {mark['variant']} {mark['speedup']}" for mark in marks
    )
    description = f"Speed-ups over {rows[0]['activation']} at {title}: {speedups}."
    names = [{"model": row["model"], "name": row_name(row)} for row in rows[1:]]
    return {
        "title": title,
        "description": description,
        "chart": activation_chart(marks, names, list(variants), description=description),
    }


def row_name(row: Record) -> str:
    """Return "relu, 33.4 % (+0.3)": the activation and, if evaluated, accuracy and change."""
    parts = [f", {row['top1']} %" if row["top1"] else "", f" ({row['change']})"]
    return row["activation"] + parts[0] + (parts[1] if row["change"] else "")


def mark_of(row: Record, variant: str, speedup: Record) -> dict[str, Any]:
    """Return one mark of the chart."""
    parsed = parse(variant)
    return {
        **{key: row[key] for key in ("model", "activation")},
        **{"variant": variant, "engine": parsed.engine, "precision": parsed.precision},
        **speedup_mark(speedup),
    }


def activation_chart(
    marks: Sequence[dict[str, Any]],
    names: Sequence[dict[str, Any]],
    variants: Sequence[str],
    *,
    description: str,
) -> dict[str, Any]:
    """Chart speed-ups over the reference's activation (logarithmic), a band per entry of `names`.

    A name has model and name (the text of its band); bands keep the given order, with a line per
    entry of `variants` in each. A mark has model, activation, variant, engine, precision and what
    `speedup_mark` returns.
    """
    title = "speed-up over the reference's activation (logarithmic)"
    x_axis = log_axis([*marks, {"ratio": 1}], ("low", "ratio", "high"), "ratio", title=title)
    height = NAME + LINE * len(variants)
    order = [name["model"] for name in names]
    band = nominal("model", sort=order, axis=None, scale={"domain": order, "padding": 0})
    lines = {"domain": list(variants), "rangeMin": NAME, "rangeMax": height}
    row = {"y": band, "yOffset": nominal("variant", scale=lines, sort=None)}
    drawn = {"x": x_axis, **row, "shape": PRECISION}
    tooltip = tooltips("variant", "speedup", "interval", "verdict")
    told = {"tooltip": [nominal("activation"), *tooltip]}
    mask = {"filled": True, "style": "mask", "size": 30, "opacity": 1}
    span = interval(x_axis, "low", "high", "x", **row, color=ENGINE)
    first, *last = bands(names, band, height)
    layers = [
        first,
        line_at("budget", [{"ratio": 1}], x=x_axis),
        layer("rule", {"strokeWidth": 2, "opacity": 0.75}, **span),
        layer("point", {"filled": True, "size": 85, "opacity": 1}, **drawn, color=ENGINE, **told),
        layer("point", mask, where="datum.tie", **drawn),
        *last,
    ]
    return chart(layers, marks, description, height=height * len(names))


def bands(names: Sequence[dict[str, Any]], band: Part, height: int) -> list[Part]:
    """Return the layers of the bands, `height` pixels each: a line above each, then its name."""
    line = layer("rule", {"style": "row", "yOffset": -height / 2}, rows=names, y=band)
    look = {"align": "left", "yOffset": NAME / 2 - height / 2}
    return [line, *labels("name", look, rows=names, y=band, x={"value": 0})]
