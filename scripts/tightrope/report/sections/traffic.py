"""Report section on one model under real traffic."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from tightrope.report.charts import Part, chart, labels, layer, line_at, quantity, tooltips
from tightrope.report.style.numbers import is_number, milliseconds, percentage, shape_of, whole
from tightrope.summary.traffic import Traffic

Record = Mapping[str, Any]
BARS = 64  # more bars would be thinner than a line on a narrow page
HEAD_ROOM = 1.15  # axis height over the highest bar, for the label of `fixed`'s length


def traffic_section(entries: Sequence[Traffic], split: int | None = None) -> dict[str, Any] | None:
    """Return the measured entries of a model, highest throughput first.

    None without measurements. `settings` are those of the first entry, which all entries of a model
    share; `size` is that of images, empty for texts; `sent_of` is the evaluation `split` if not all
    of its samples were sent; `figures` is empty if no lengths were recorded; `largest` is the
    full scale of the table's bars; `dates` are those of the first and the last measurement.
    """
    measured = [entry for entry in entries if entry.get("status") == "ok"]
    if not measured:
        return None
    settings = measured[0]
    measured.sort(key=best_throughput, reverse=True)
    bound = f"{milliseconds(settings['p99_bound_s']) or 'an unknown number of'} ms"
    sized = {key: settings[key] for key in ("height", "width")}
    size = shape_of(sized) if settings["height"] else None
    figure = length_figure(settings)
    dates = sorted({entry["measured"] for entry in measured if entry.get("measured")})
    sent = settings["samples"]
    return {
        "settings": settings,
        "bound": bound,
        "size": size,
        "sent_of": split if is_number(sent) and is_number(split) and sent < split else None,
        "figures": [figure] if figure else [],
        "paddings": {row.get("padding") for entry in measured for row in entry.get("rows") or ()},
        "entries": measured,
        "dates": dates[:1] + dates[1:][-1:],
        "largest": best_throughput(measured[0]),
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


def length_bars(lengths: Mapping[str, Sequence[int]]) -> list[dict[str, Any]]:
    """Bin `samples` (counts) by `tokens` (distinct lengths) into at most 64 bars of equal width.

    A bar has `low` and `high` (tokens, half a token outside its lengths), `samples`, and its name
    `tokens`: "24", or "24 to 27". Bars without samples are left out.
    """
    counts = dict(zip(lengths["tokens"], lengths["samples"], strict=True))
    if not counts:
        return []
    first, last = min(counts), max(counts)
    width = math.ceil((last - first + 1) / BARS)
    bars = []
    for start in range(first, last + 1, width):
        end = start + width - 1
        samples = sum(counts.get(length, 0) for length in range(start, end + 1))
        name = str(start) if width == 1 else f"{start} to {end}"
        bars.append({"low": start - 0.5, "high": end + 0.5, "samples": samples, "tokens": name})
    return [bar for bar in bars if bar["samples"]]


def length_chart(
    bars: Sequence[dict[str, Any]], *, edges: Sequence[int], longest: int | None, description: str
) -> dict[str, Any]:
    """Chart the number of samples by length from `length_bars`, as wide as the container.

    A dashed line ends each bucket, a solid line marks the length that `fixed` pads to.
    """
    lines = sorted({*edges, *([longest] if longest else [])})
    x_axis, y_axis = tokens_axis([*lines, bars[-1]["high"]], lines), samples_axis(bars)
    closed = [{"low": edge + 0.5} for edge in edges if edge != longest]
    fixed = [{"low": longest + 0.5, "name": f"fixed: {longest}"}] if longest else []
    drawn = {"x": x_axis, "y": y_axis, "x2": {"field": "high"}, "y2": {"datum": 0}}
    name = {"align": "right", "dx": -5}
    layers = [
        layer("bar", {"style": "bars"}, **drawn, tooltip=tooltips("tokens", "samples")),
        line_at("edge", closed, x=x_axis),
        line_at("zero", fixed, x=x_axis),
        *labels("name", name, rows=fixed, y={"value": 7}, x=x_axis),
    ]
    return chart(layers, bars, description, title="samples", height=200)


def tokens_axis(ends: Sequence[float], lines: Sequence[int]) -> Part:
    """Return a token axis from zero, with ticks half a token past each bucket's last length."""
    axis: Part = {"grid": False, "labelExpr": "floor(datum.value)", "labelOverlap": "greedy"}
    if lines:
        axis["values"] = [0, *(line + 0.5 for line in lines)]
    scale = {"domain": [0, max(ends) + 0.5], "nice": False}
    return quantity("low", axis=axis, scale=scale, title="length, tokens")


def samples_axis(bars: Sequence[dict[str, Any]]) -> Part:
    """Return an axis of whole counts from zero."""
    highest = max(bar["samples"] for bar in bars)
    axis = {"tickCount": min(4, highest), "format": ",d"}
    scale = {"domain": [0, highest * HEAD_ROOM], "nice": False}
    return quantity("samples", axis=axis, scale=scale, title=None)
