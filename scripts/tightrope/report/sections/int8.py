"""Report section on INT8: calibrations, operators that int8-auto left in float, sensitivity."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from msgspec.structs import asdict

from tightrope.machine.host import saturates
from tightrope.report.charts import (
    METHOD,
    METHOD_SHAPE,
    Part,
    accuracy_axis,
    budget_line,
    chart,
    interval,
    is_compressed,
    labels,
    layer,
    line_at,
    log_axis,
    marks,
    nominal,
    quantity,
    tooltips,
)
from tightrope.report.sections.figures import change_of, join_title
from tightrope.report.style.numbers import bounded, percentage, significant, whole
from tightrope.summary.accuracy import Accuracy, Search, Sensitivity
from tightrope.summary.models import Model
from tightrope.summary.results import Result
from tightrope.summary.runs import Host
from tightrope.variants import GIVEN, QUANTIZED

Record = Mapping[str, Any]
Point = dict[str, Any]
MOST_OPERATORS = 40
MARK = "\N{BLACK DIAMOND}"
EXTENT = 34  # pixels left of both panels, so that their x axes align
SPREAD = 0.025  # offset between series at the same count, as a share of the width
ROW_HEIGHT = 24  # pixels for the name and the bar below it
LEAST = 1e-6  # share of the highest bar below which a bar has no length


def int8_section(
    results: Sequence[Result],
    model: Model | None,
    hosts: Mapping[str, str],
    budget_points: float | None,
) -> dict[str, Any] | None:
    """Return the section of a model, None if no INT8 or FP8 variant was evaluated.

    `rows` are those of the table, `figures` have two panels or a sentence each, `searches` a
    sentence and trials, `sensitivities` a chart and rows. `methods` and `mixed` precisions are
    those that the figures draw.
    """
    judged = [result for result in results if is_quantized(result) and result.accuracy]
    rows = [calibrated(result) for result in judged]
    if not rows:
        return None
    searches = [search_summary(one, one.search) for one in results if one.search]
    known = model.sensitivity if model else {}
    figures = calibration_figures(rows, hosts, budget_points)
    drawn = [point for figure in figures if figure["panels"] for point in figure["points"]]
    return {
        "rows": rows,
        "figures": figures,
        "methods": {point["method"] for point in drawn},
        "mixed": {point["precision"] for point in drawn if point["mixed"]},
        "searches": searches,
        "sensitivities": [
            sensitivity_figure(title, record, searches)
            for title, record in sorted(known.items(), key=by_samples)
        ],
    }


def is_quantized(result: Result) -> bool:
    """Return whether a result is quantized, in INT8 or FP8."""
    return result.precision in QUANTIZED


def has_vnni(results: Iterable[Result], hosts: Mapping[str, Host]) -> bool:
    """Return whether a CPU's INT8 result comes from an x86 host whose products do not saturate."""
    places = {
        result.host
        for result in results
        if is_quantized(result) and result.accuracy and result.device == "cpu"
    }
    sets = [host.isa for name, host in hosts.items() if name in places]
    return any("avx2" in isa and not saturates({"isa": isa}) for isa in sets)


def calibrated(result: Result) -> dict[str, Any]:
    """Return a result with its calibration parts."""
    method, samples, repair = calibration_parts(result.calibration)
    given = result.precision == GIVEN
    return {
        **asdict(result),
        **{"method": method, "samples": samples, "repair": repair},
        "ranges": "in the file as given" if given else "ranges are found at run time",
    }


def calibration_parts(calibration: str | None) -> tuple[str | None, int | None, str | None]:
    """Return method, samples and repair from a calibration name, each None if missing."""
    method, *rest = (calibration or "").split("-", 2)
    if not rest or not rest[0].isdigit():
        return None, None, None
    return method, int(rest[0]), rest[1] if len(rest) > 1 else None


def by_samples(entry: tuple[str, Any]) -> tuple[str, int, str]:
    """Return the sort key of calibrations: a hundred samples come after twenty."""
    method, samples, _ = calibration_parts(entry[0].partition("-")[2])
    return method or "", samples or 0, entry[0]


def search_summary(result: Result, search: Search) -> dict[str, Any]:
    """Return the sentence on the search of an int8-auto variant, with its data."""
    in_float, smooth = len(search.in_float), search.smoothquant
    trials = [
        {**asdict(one), "samples": search.samples, "number": at}
        for at, one in enumerate(search.trials, 1)
    ]
    parts = [
        "plain INT8" if smooth is None else f"SmoothQuant {smooth:g}",
        f"{in_float or 'none'} of {whole(search.operators)} operators "
        f"{'stay' if in_float > 1 else 'stays'} in float",
        f"{len(trials)} {'trial' if len(trials) == 1 else 'trials'} on {whole(search.samples)} "
        f"calibration examples in {significant(search.seconds, 2)} s.",
    ]
    return {
        **{key: getattr(result, key) for key in ("variant", "calibration")},
        "in_float": search.in_float,
        "trials": trials,
        "sentence": "; ".join(parts),
    }


def calibration_figures(
    rows: Sequence[Record], hosts: Mapping[str, str], budget_points: float | None
) -> list[dict[str, Any]]:
    """Return a figure per engine, device and host, on common axes, without repaired variants.

    A group with one calibration has no panels, but a `sentence`.
    """
    groups: dict[tuple[Any, ...], list[Point]] = {}
    devices = {row["device"] for row in rows}
    for row in rows:
        if point := calibration_point(row):
            fields = tuple(row[key] for key in ("engine", "device", "host"))
            groups.setdefault(fields, []).append(point)
    drawn = [group for group in groups.values() if len(calibrations(group)) > 1]
    extent = [point for group in drawn for point in group]
    figures = []
    for (engine, device, host), group in groups.items():
        group.sort(key=lambda point: (point["precision"], point["method"], point["samples"]))
        title = join_title(engine, device if len(devices) > 1 else None, hosts.get(host))
        one = len(calibrations(group)) == 1
        figures.append(
            {
                "title": title,
                "points": group,
                "panels": [] if one else panels(title, group, extent, budget_points),
                "sentence": calibration_sentence(group) if one else None,
            }
        )
    return figures


def calibration_point(row: Record) -> Point | None:
    """Return the point of a row, None if it has a repair or no accuracy change."""
    accuracy: Accuracy = row["accuracy"]
    if row["samples"] is None or row["repair"] or (change := accuracy.change) is None:
        return None
    precision, agreement = row["precision"], accuracy.agreement
    agreed = percentage(agreement, accuracy.samples)
    return {
        **{key: row[key] for key in ("variant", "method", "samples")},
        "precision": precision,
        "mixed": "-" in precision,
        **change_of(change, accuracy.samples),
        "agreement": None if agreement is None else 100 * agreement,
        "agreed": f"{agreed} %" if agreed else None,
    }


def calibrations(group: Iterable[Record]) -> set[tuple[str, int]]:
    """Return method and samples of each calibration of the points."""
    return {(point["method"], point["samples"]) for point in group}


def panels(
    title: str, group: Sequence[Point], extent: Sequence[Point], budget: float | None
) -> list[dict[str, Any]]:
    """Return two stacked panels; the axes cover the points of `extent`."""
    change, agreed = (describe(title, group, field) for field in ("change", "agreed"))
    above = accuracy_over_samples(group, extent=extent, budget_points=budget, description=change)
    found = [{"description": f"Accuracy change over calibration samples, {change}", "chart": above}]
    if any(point["agreed"] for point in group):
        below = agreement_over_samples(group, extent=extent, description=agreed)
        words = f"Agreement with fp32 over calibration samples, {agreed}"
        found.append({"description": words, "chart": below})
    return found


def calibration_sentence(group: Sequence[Record]) -> str:
    """Describe the points of one calibration in words."""
    parts = [
        f"{point['precision']} {point['change']}"
        + (f", {point['agreed']} agreement with fp32" if point["agreed"] else "")
        for point in group
    ]
    return (
        f"one calibration, {group[0]['method']} on {whole(group[0]['samples'])} samples: "
        f"{'; '.join(parts)}"
    )


def describe(title: str, group: Iterable[Record], field: str) -> str:
    """Describe a panel in words."""
    told = [
        f"{point['precision']} {point['method']} {point['samples']}: {point[field]}"
        for point in group
        if point[field]
    ]
    return f"{title}: {'; '.join(told)}."


def accuracy_over_samples(
    points: Sequence[Point],
    *,
    extent: Sequence[Point],
    budget_points: float | None,
    description: str,
) -> dict[str, Any]:
    """Chart accuracy change (points) with its interval over calibration samples.

    A point has variant, method, precision, mixed (bool: drawn hollow), samples, delta, delta_low,
    delta_high, agreement (percent, or None), and the tooltip texts change and agreed. The axes also
    cover the points of `extent`.
    """
    x_axis, y_axis = samples_axis(extent), accuracy_axis(extent, budget_points)
    x_axis["axis"] = {**x_axis["axis"], "labels": False}
    x_axis["title"] = None
    upright = interval(y_axis, "delta_low", "delta_high", "y", x=x_axis, color=METHOD)
    layers = [
        line_at("zero", [{"delta": 0}], y=y_axis),
        *budget_line(budget_points, y_axis)[:1],
        layer("rule", {"strokeWidth": 1.5, "opacity": 0.75}, **upright),
        *series(x_axis, y_axis, change="accuracy change"),
    ]
    return panel(
        layers, spread(points, extent), y_axis, "accuracy change, points", 210, description
    )


def agreement_over_samples(
    points: Sequence[Point], *, extent: Sequence[Point], description: str
) -> dict[str, Any]:
    """Chart the share of predictions equal to those in fp32 (percent), same points and x axis."""
    rows = [
        {**point, "less": point["agreement"] - 100}
        for point in spread(points, extent)
        if point["agreement"] is not None
    ]
    ends = ("delta", "delta_low", "delta_high")
    known = [point["agreement"] - 100 for point in extent if point["agreement"] is not None]
    y_axis = accuracy_axis([dict.fromkeys(ends, less) for less in (*known, -1)], None)
    y_axis["field"] = "less"
    y_axis["axis"]["labelExpr"] = "format(datum.value + 100, '~r')"
    low = y_axis["scale"]["domain"][0]
    # room for a mark at 100, but not for another label
    y_axis["scale"]["domain"] = [low, min(0.4, -0.05 * low)]
    layers = series(samples_axis(extent), y_axis, agreed="agreement with fp32")
    return panel(layers, rows, y_axis, "agreement with fp32, %", 130, description)


def panel(
    layers: list[Part], rows: Sequence[Point], y_axis: Part, title: str, height: int, words: str
) -> dict[str, Any]:
    """Return one of the stacked panels, described in words."""
    y_axis["axis"] |= {"minExtent": EXTENT, "maxExtent": EXTENT}
    title += " (compressed)" if is_compressed(y_axis) else ""
    return chart(layers, rows, words, title=title, height=height)


def series(x_axis: Part, y_axis: Part, **told: str) -> list[Part]:
    """Return a mark per point, hollow for mixed precisions, and a line through each series."""
    tooltip = tooltips("variant", "samples", **told)
    position = {"x": x_axis, "y": y_axis}
    detail = {"color": METHOD, "detail": nominal("precision")}
    return [
        layer("line", {"strokeWidth": 1.5, "opacity": 0.75}, **position, **detail),
        *marks({**position, "shape": METHOD_SHAPE}, METHOD, tooltip, "mixed", size=95),
    ]


def samples_axis(extent: Sequence[Point]) -> Part:
    """Return a logarithmic axis with a tick at each number of calibration samples."""
    counts = sorted({point["samples"] for point in extent})
    scale = {"type": "log", "domain": domain(counts), "nice": False}
    axis = {"values": counts, "format": ",d", "labelOverlap": True}
    return quantity("place", scale=scale, axis=axis, title="calibration samples (logarithmic)")


def domain(counts: Sequence[int]) -> list[float]:
    """Return the ends of the axis, with room around the first and the last count."""
    pad = max((counts[-1] / counts[0]) ** 0.12, 1.5)
    return [counts[0] / pad, counts[-1] * pad]


def spread(points: Sequence[Point], extent: Sequence[Point]) -> list[Point]:
    """Add a `place` on the axis to each point, so that series at the same count do not overlap."""
    low, high = domain(sorted({point["samples"] for point in extent}))
    names = list(dict.fromkeys((point["method"], point["precision"]) for point in points))
    middle = (len(names) - 1) / 2
    step = {name: (high / low) ** (SPREAD * (i - middle)) for i, name in enumerate(names)}
    return [
        {**point, "place": point["samples"] * step[point["method"], point["precision"]]}
        for point in points
    ]


def sensitivity_figure(
    title: str, record: Sensitivity, searches: Iterable[Record]
) -> dict[str, Any]:
    """Return operators alone in INT8, most sensitive first; those that int8-auto left are marked.

    `title` has scheme and calibration; `rows` holds all operators, the chart the first
    MOST_OPERATORS.
    """
    matching = [search for search in searches if search["calibration"] == title.partition("-")[2]]
    in_float = {operator for search in matching for operator in search["in_float"]}
    rows = [
        {**asdict(row), "samples": record.samples, "in_float": row.operator in in_float}
        for row in record.operators
    ]
    bars = [sensitivity_bar(row) for row in rows[:MOST_OPERATORS]]
    first = f"{bars[0]['operator']} with {bars[0]['label']} millinats" if bars else "none"
    description = (
        f"Divergence that each of {len(rows)} operators alone in INT8 brings, {title}; the most "
        f"sensitive is {first}. Left in float: {', '.join(sorted(in_float)) or 'none'}."
    )
    return {
        "title": title,
        "samples": record.samples,
        "rows": rows,
        "drawn": len(bars),
        "searched": bool(matching),
        "left": len(in_float),
        "description": description,
        "chart": sensitivity_chart(bars, description=description),
    }


def sensitivity_bar(row: Record) -> Point:
    """Return the bar of an operator."""
    return {
        "operator": row["operator"],
        "millinats": 1e3 * row["kl"],
        "in_float": row["in_float"],
        "name": f"{MARK} {row['operator']}" if row["in_float"] else row["operator"],
        "label": bounded(row["kl"], 0.001, 1000),
        "agreement": f"{percentage(row['agreement'])} %",
    }


def sensitivity_chart(rows: Sequence[Point], *, description: str) -> dict[str, Any]:
    """Chart the KL divergence (millinats, logarithmic) of operators, a named bar each, in order.

    A row has operator, millinats, in_float (bool: drawn in another colour), name (the text above
    the bar), and the texts label and agreement.
    """
    highest = max((row["millinats"] for row in rows), default=0)
    visible = [row for row in rows if row["millinats"] > highest * LEAST]
    title = "KL divergence, millinats (logarithmic)"
    x_axis = log_axis(visible, ("millinats",), "millinats", title=title)
    x_axis["axis"]["labelExpr"] = "format(datum.value, datum.value < 0.001 ? '~e' : '~r')"
    start = x_axis["scale"]["domain"][0]
    bars = [{**row, "millinats": max(row["millinats"], start)} for row in rows]
    order = nominal("operator", sort=[row["operator"] for row in rows], axis=None)
    tooltip = tooltips("operator", label="KL, millinats", agreement="agreement")
    drawn = {"x": x_axis, "y": order, "x2": {"datum": start}, "tooltip": tooltip}
    look = {"height": 5, "yOffset": 6}
    layers = [
        layer("bar", {"style": "bars", **look}, where="!datum.in_float", **drawn),
        layer("bar", {"style": "marked", **look}, where="datum.in_float", **drawn),
    ]
    for field, align, place in (("name", "left", 0), ("label", "right", "width")):
        layers += labels(field, {"align": align, "yOffset": -5}, y=order, x={"value": place})
    return chart(layers, bars, description, height=ROW_HEIGHT * len(rows))
