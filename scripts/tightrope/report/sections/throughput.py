"""Report section on the throughput of one model's variants by instances, threads and batch."""

from collections.abc import Mapping, Sequence
from typing import Any

from tightrope.report.charts import Part, chart, layer, nominal, ordinal, quantity, tooltips
from tightrope.report.style.numbers import (
    JOINED,
    ends,
    milliseconds,
    ratio,
    ratio_interval,
    shape_label,
    shape_of,
    significant,
    whole,
)

Record = Mapping[str, Any]
# pixels of a chart: of the names of its rows, and of a column with its text
NAMES_WIDTH, COLUMN_WIDTH = 165, 96
UNKNOWN_P99 = "too few calls for p99"
ROW_HEIGHT = 46  # pixels, for two lines of text


def throughput_section(entries: Sequence[Record], hosts: Mapping[str, str]) -> list[dict[str, Any]]:
    """Return a figure per measured entry of a model, the highest throughput first.

    Each has the `variant`, its `host` where there are several, `size` of an input, the `sentences`
    on its best points, the `cells` of its chart, and its
    `least_width` in pixels, in which the texts of its cells do not overlap.
    """
    measured = [entry for entry in entries if entry["status"] == "ok"]
    measured.sort(key=lambda entry: -((entry["best"] or {}).get("samples_per_s") or 0))
    return [figure(entry, hosts) for entry in measured]


def figure(entry: Record, hosts: Mapping[str, str]) -> dict[str, Any]:
    """Return the heat map of a variant with its words and the rows of its table."""
    best = entry["best"]
    cells = [cell(point, best) for point in entry["points"]]
    because = [f"It is provisional: {best['disturbed']}."] if best and best["provisional"] else []
    sentences = [*best_words(entry), *because, *bound_words(entry)]
    description = f"Samples per second of {entry.get('variant')}. {' '.join(sentences)}"
    batches = {cell["batch"] for cell in cells}
    sizes = {key: entry[key] for key in ("sequence", "height", "width") if entry.get(key)}
    return {
        "variant": entry["variant"],
        "host": hosts.get(str(entry["host"])),
        "size": shape_label(shape_of(sizes)),
        "sentences": sentences,
        "description": description,
        "cells": cells,
        "least_width": NAMES_WIDTH + COLUMN_WIDTH * len(batches),
        "chart": throughput_chart(cells, description=description),
    }


def cell(point: Record, best: Record | None) -> dict[str, Any]:
    """Return a cell of the heat map: numbers as text, and a note on what is missing or disturbed.

    `rate` says in a word why there is no number.
    """
    note = point["reason"] or point["disturbed"]
    rate, p99 = significant(point["samples_per_s"]), milliseconds(point["p99_s"])
    word = "skipped" if point["skipped"] else "failed" if point["reason"] else "disturbed"
    return {
        "division": division(point),
        **{name: point[name] for name in ("batch", "samples_per_s")},
        "rate": f"{rate}/s" if rate else word,
        "samples": rate or word,
        "interval": ends(point["low"], point["high"]),
        "p50": milliseconds(point["p50_s"]),
        "p99": f"p99{JOINED}{p99}{JOINED}ms" if p99 else "",
        "p99_ms": p99,
        "calls": whole(point["calls"]),
        "note": note or (None if p99 else UNKNOWN_P99),
        "best": best is not None and point == best,
    }


def division(point: Record) -> str:
    """Name instances and threads: "2 instances with 4 threads each"."""
    instances, threads = point["instances"], point["threads"]
    each = f"{threads} {'thread' if threads == 1 else 'threads'}"
    return f"1 instance, {each}" if instances == 1 else f"{instances} instances, {each} each"


def best_words(entry: Record) -> list[str]:
    """Say which point is the best, and by what factor it beats one instance with all threads."""
    best, single, gain = entry["best"], entry["single"], entry["gain"]
    if not best:
        return ["No point has a number."]
    found = f"Best: {at(best)}"
    if gain and single:
        return [
            f"{found}, {ratio(gain)} ({ratio_interval(gain)}) of one instance with all "
            f"{entry.get('cores')} threads at its best batch, {single['batch']}."
        ]
    if best == single:
        return [f"{found}; no other division of the cores gave more."]
    return [f"{found}; one instance with all threads has no number to compare it with."]


def bound_words(entry: Record) -> list[str]:
    """Say which point is the best within the bound of p99, if there is one."""
    bound, best = milliseconds(entry["p99_bound_s"]), entry["best_within_bound"]
    if bound is None:
        return []
    if not best:
        return [f"No point is known to have p99 within {bound} ms."]
    if best == entry["best"]:
        return [f"Its p99 is within {bound} ms."]
    return [f"With p99 within {bound} ms: {at(best)}."]


def at(point: Record) -> str:
    """Format a point with its rate: "2 instances, 4 threads each, at batch 16: 1,240 samples/s"."""
    known = ends(point["low"], point["high"])
    interval = f" (95 % interval {known})" if known else ""
    rate = significant(point["samples_per_s"])
    return f"{division(point)}, at batch {point.get('batch')}: {rate} samples/s{interval}"


def throughput_chart(cells: Sequence[dict[str, Any]], *, description: str) -> dict[str, Any]:
    """Chart samples per second: a row per division of the cores, a column per batch.

    A cell has division (text), batch, samples_per_s (None without numbers), best (bool), the text
    in it as rate and p99, and the tooltip texts interval, calls and reason. Rows and columns are in
    the given order.
    """
    rows = list(dict.fromkeys(cell["division"] for cell in cells))
    batches = sorted({cell["batch"] for cell in cells})
    still, wide = {"labelAngle": 0, "grid": False}, {"labelLimit": 220, "grid": False}
    heat = {"range": "heatmap", "zero": False}
    colour = quantity("samples_per_s", scale=heat, legend=None)
    fields = ("division", "batch", "rate", "interval", "p99", "calls", "note")
    place: Part = {
        "x": ordinal("batch", sort=batches, title="batch", axis=still),
        "y": ordinal("division", sort=rows, title=None, axis=wide),
        "tooltip": tooltips(*fields),
    }
    known = "isValid(datum.samples_per_s)"
    layers = [
        layer("rect", {}, where=known, **place, color=colour),
        layer("rect", {"style": "mask"}, where=f"!{known}", **place),
        layer("rect", {"style": "ring", "fillOpacity": 0}, where="datum.best", **place),
        layer("text", {"style": "label", "dy": -8}, **place, text=nominal("rate")),
        layer("text", {"style": "label", "dy": 9}, **place, text=nominal("p99")),
    ]
    return chart(layers, cells, description, height=ROW_HEIGHT * len(rows))
