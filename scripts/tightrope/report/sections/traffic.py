"""Report section on one model under real traffic."""

from collections.abc import Mapping, Sequence
from typing import Any

from tightrope.report.charts.lengths import length_bars, length_chart
from tightrope.report.style.numbers import is_number, percentage, shape_of, whole
from tightrope.summary.traffic import Traffic

Record = Mapping[str, Any]
SETTINGS = ("batch", "p99_bound_s", "samples", "longest", "edges", "lengths", "loadgen", "threads")


def traffic_section(entries: Sequence[Traffic], split: int | None = None) -> dict[str, Any] | None:
    """Return the measured entries of a model, highest throughput first.

    None without measurements. `settings` are those of the first entry, which all entries of a model
    share; `size` is that of images, empty for texts; `sent_of` is the evaluation `split` if not all
    of its samples were sent; `figures` is empty if no lengths were recorded; `largest` is the full
    scale of the table's bars; `dates` are those of the first and the last measurement.
    """
    measured = [entry for entry in entries if entry.get("status") == "ok"]
    if not measured:
        return None
    settings = {key: measured[0].get(key) for key in SETTINGS}
    figure = length_figure(settings)
    dates = sorted({entry["measured"] for entry in measured if entry.get("measured")})
    sent = settings["samples"]
    return {
        "settings": settings,
        "size": shape_of({key: measured[0].get(key) for key in ("height", "width")}),
        "sent_of": split if is_number(sent) and is_number(split) and sent < split else None,
        "figures": [figure] if figure else [],
        "paddings": {row.get("padding") for entry in measured for row in entry.get("rows") or ()},
        "entries": sorted(measured, key=best_throughput, reverse=True),
        "dates": dates[:1] + dates[1:][-1:],
        "largest": max(map(best_throughput, measured)),
    }


def best_throughput(entry: Traffic) -> float:
    """Return the highest samples per second over all padding modes, 0 if none was measured."""
    rates = [row.get("samples_per_s") for row in entry.get("rows") or ()]
    return max((value for value in rates if is_number(value)), default=0.0)


def length_figure(settings: Record) -> dict[str, Any] | None:
    """Return the length histogram with its description and table; None without lengths."""
    bars = length_bars(settings["lengths"] or {"tokens": [], "samples": []})
    if not bars:
        return None
    edges, longest = settings["edges"] or [], settings["longest"]
    description = describe_lengths(settings["lengths"], edges, longest)
    return {
        "samples": sum(settings["lengths"]["samples"]),
        "shortest": min(settings["lengths"]["tokens"]),
        "longest": max(settings["lengths"]["tokens"]),
        "bars": bars,
        "description": description,
        "chart": length_chart(bars, edges=edges, longest=longest, description=description),
    }


def describe_lengths(
    lengths: Mapping[str, Sequence[int]], edges: Sequence[int], longest: int | None
) -> str:
    """Describe the histogram in words: the share of the samples in each length bucket."""
    pairs = list(zip(lengths["tokens"], lengths["samples"], strict=True))
    total = sum(lengths["samples"])
    shares, below = [], 0
    for edge in sorted(edges):
        samples = sum(count for length, count in pairs if below < length <= edge)
        shares.append(f"{percentage(samples / total, total)} % from {below + 1} to {edge} tokens")
        below = edge
    sentences = [
        f"Lengths of {whole(total)} samples, {min(lengths['tokens'])} to "
        f"{max(lengths['tokens'])} tokens.",
        f"By bucket: {', '.join(shares)}." if shares else "",
        f"Padding `fixed` takes all to {longest} tokens." if longest else "",
    ]
    return " ".join(filter(None, sentences))
