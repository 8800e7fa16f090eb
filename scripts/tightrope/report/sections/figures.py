"""Figures of a model for each host: accuracy against latency, and speed-ups over the baseline.

Times of two hosts are never in one figure.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from tightrope.report.charts import (
    ENGINE,
    PRECISION,
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
    tooltips,
)
from tightrope.report.style.numbers import (
    milliseconds,
    points,
    points_interval,
    ratio,
    ratio_interval,
    shape_label,
    sizes,
)
from tightrope.statistics import Interval
from tightrope.summary.measured import Ratio, Shape, interval_of
from tightrope.summary.results import LatencyRow, Result
from tightrope.variants import at_place

Record = Mapping[str, Any]
ROW_HEIGHT = 38  # pixels for the name and the mark below it
MARK_OFFSET = 8
BASELINE_HEIGHT = 18  # of the baseline's line in a row, which ends below the name


def shapes_in(results: Iterable[Result]) -> list[Shape]:
    """Return every measured shape, smallest first."""
    shapes = {row.shape for result in results for row in result.latency}
    return sorted(shapes, key=sizes)


def row_at(result: Result, shape: Shape) -> LatencyRow | None:
    """Return the latency row of a shape, or None."""
    return next((row for row in result.latency if row.shape == shape), None)


def join_title(*parts: str | None) -> str:
    """Join the non-empty parts with dots."""
    return " \N{MIDDLE DOT} ".join(filter(None, parts))


def figures_by_host(
    measured: Iterable[Result],
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
    groups: dict[Any, list[Result]] = {}
    for result in measured:
        groups.setdefault(result.host, []).append(result)
    found: dict[str, Any] = {"hosts": list(groups), "trade_offs": [], "speedups": []}
    for key, group in groups.items():
        host = hosts.get(key)
        found["trade_offs"] += trade_offs(group, baselines, deploy, equals, budget, host=host)
        found["speedups"] += speedups(group, baselines, host=host)
    return found


def trade_offs(
    results: Sequence[Result],
    baselines: Mapping[str, str],
    deploy: Mapping[Any, set[str]],
    equals: Mapping[Any, set[str]],
    budget_points: float | None,
    *,
    host: str | None = None,
) -> list[dict[str, Any]]:
    """Return a figure per shape: accuracy against latency of one model's results on one host.

    `deploy` holds the recommended variants by shape, `equals` these and the variants equal to one
    of them in speed; `host` is named in the titles. A figure has title, description, chart,
    points (fastest first, the Pareto front numbered) and unplaced (variants without a time).
    """
    figures = []
    for shape in shapes_in(results):
        rows = [(result, row_at(result, shape)) for result in results if result.accuracy]
        evaluated = [(result, row) for result, row in rows if row]
        placed = [point for pair in evaluated if (point := trade_off_point(*pair, baselines))]
        if not placed:
            continue
        number_front(placed, equals.get(shape, set()))
        drawn = {point["variant"] for point in placed}
        for point in placed:
            point["deploy"] = point["variant"] in deploy.get(shape, ())
        title = join_title(shape_label(shape), host)
        description = describe_trade_off(title, placed)
        unplaced = [one.variant for one, _ in evaluated if one.variant not in drawn]
        figures.append(
            {
                "title": title,
                "description": description,
                "points": placed,
                "unplaced": unplaced,
                "chart": accuracy_latency_chart(
                    without_records(placed), budget_points=budget_points, description=description
                ),
            }
        )
    return figures


def trade_off_point(
    result: Result, row: LatencyRow, baselines: Mapping[str, str]
) -> dict[str, Any] | None:
    """Return the point of a variant at a shape, None without a time or an accuracy change.

    Its time is the baseline's over its speed-up, so that the chart and the decision agree.
    """
    accuracy, interval = result.accuracy, interval_of(row.speedup)
    if accuracy is None or not row.paired_s:
        return None
    change = Interval(0, 0, 0) if result.variant in baselines.values() else accuracy.change
    if change is None:
        return None
    latency = row.paired_s * 1e3
    return {
        **{name: getattr(result, name) for name in ("variant", "engine", "precision")},
        "latency_ms": latency,
        "latency_low": latency * interval.value / interval.high if interval else latency,
        "latency_high": latency * interval.value / interval.low if interval else latency,
        **change_of(change, accuracy.samples),
        "latency": f"{milliseconds(row.paired_s)} ms",
        "accuracy": accuracy,
        "result": result,
        "row": row,
    }


def change_of(change: Interval, samples: int | None = None) -> dict[str, Any]:
    """Return a change of accuracy in points with its interval, and both in words."""
    value, low, high = change
    words = f"{points(value, samples)} points ({points_interval(low, high, samples)})"
    ends = {"delta": value, "delta_low": low, "delta_high": high}
    return {**{name: 100 * end for name, end in ends.items()}, "change": words}


def number_front(placed: list[dict[str, Any]], equal: set[str]) -> None:
    """Sort the points by latency and number the Pareto front, fastest first.

    Variants that are `equal` in speed do not dominate each other, and a variant with undecided
    accuracy dominates none.
    """
    placed.sort(key=lambda point: (point["latency_ms"], -point["delta"]))
    # of the points so far the one with the highest accuracy, of all and of those not in `equal`
    best_of_all: Record | None = None
    best_of_others: Record | None = None
    number = 0
    for point in placed:
        rival = best_of_others if point["variant"] in equal else best_of_all
        on_front = rival is None or not dominates(rival, point)
        number += on_front
        point["front"] = number if on_front else None
        if point["accuracy"].verdict != "undecided":
            best_of_all = better(point, best_of_all)
            if point["variant"] not in equal:
                best_of_others = better(point, best_of_others)


def dominates(first: Record, second: Record) -> bool:
    """Return whether a point that is no slower than the second one is better, or as good faster."""
    if first["delta"] == second["delta"]:
        return bool(first["latency_ms"] < second["latency_ms"])
    return bool(first["delta"] > second["delta"])


def better(point: Record, best: Record | None) -> Record:
    """Return the more accurate of a point and the best of those before it, on a tie the latter."""
    return point if best is None or point["delta"] > best["delta"] else best


def describe_trade_off(title: str, placed: Sequence[Record]) -> str:
    """Describe the chart in words; a point of several models has its `model`."""
    front = "; ".join(
        f"{' '.join(filter(None, [point.get('model'), point['variant']]))} ({point['latency']}, "
        f"{point['change']})"
        for point in placed
        if point["front"]
    )
    return (
        f"Accuracy change against latency of {len(placed)} variants at {title}. "
        f"On the Pareto front, fastest first: {front}."
    )


def without_records(rows: Iterable[Record]) -> list[dict[str, Any]]:
    """Return the fields that the chart draws."""
    records = ("result", "row", "accuracy")
    return [{key: one for key, one in row.items() if key not in records} for row in rows]


def accuracy_over_latency(
    points: Sequence[Record], budget_points: float | None, colour: Part, where: str = ""
) -> tuple[Part, list[Part], list[Part]]:
    """Return the position of a point, and the layers below it: lines, then intervals.

    A point has latency_ms, latency_low, latency_high (drawn logarithmic), delta, delta_low,
    delta_high (points) and front; only those `where` this is true have intervals.
    """
    ends = ("latency_low", "latency_ms", "latency_high")
    x_axis = log_axis(points, ends, "latency_ms", title="latency, ms (logarithmic)")
    y_axis = accuracy_axis(points, budget_points)
    position, bar = {"x": x_axis, "y": y_axis}, {"opacity": 0.75}
    upright = interval(y_axis, "delta_low", "delta_high", "y", x=x_axis, color=colour)
    level = interval(x_axis, "latency_low", "latency_high", "x", y=y_axis, color=colour)
    front = {"style": "front", "interpolate": "step-after"}
    return (
        position,
        [line_at("zero", [{"delta": 0}], y=y_axis), *budget_line(budget_points, y_axis)],
        [
            layer("line", front, where="datum.front", **position),
            layer("rule", bar, where=where, **upright),
            layer("rule", bar, where=where, **level),
        ],
    )


def ring(where: str, position: Part) -> Part:
    """Return a ring around the points that are recommended."""
    return layer(
        "point", {"style": "ring", "size": 430, "shape": "circle"}, where=where, **position
    )


def compression(position: Part) -> str:
    """Return what the title of a chart says of a compressed axis."""
    return " (compressed beyond 1)" if is_compressed(position["y"]) else ""


def accuracy_latency_chart(
    points: Sequence[dict[str, Any]], *, budget_points: float | None, description: str
) -> dict[str, Any]:
    """Chart accuracy change (points) against latency (ms, logarithmic).

    A point has variant, engine, precision, front (its number on the Pareto front, or None), deploy
    (bool), the tooltip texts latency and change, and what `accuracy_over_latency` draws; points
    come fastest first.
    """
    position, lines, intervals = accuracy_over_latency(points, budget_points, ENGINE)
    tooltip = tooltips("variant", "latency", "change")
    look, seen = {"filled": True, "size": 110, "opacity": 1}, {"color": ENGINE, "shape": PRECISION}
    text = {"align": "left", "dx": 10, "dy": -13}
    layers = [
        *lines,
        *intervals,
        ring("datum.deploy", position),
        layer("point", look, **position, **seen, tooltip=tooltip),
        *labels("text", text, rows=front_labels(points), **position),
    ]
    title = f"accuracy change, points{compression(position)}"
    return chart(layers, points, description, title=title, height=270)


def front_labels(points: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the number labels of the Pareto front; neighbours too close to read share one."""
    latencies = [point["latency_ms"] for point in points]
    near = (max(latencies) / min(latencies)) ** 0.06
    groups: list[list[dict[str, Any]]] = []
    for point in (point for point in points if point["front"]):
        if groups and point["latency_ms"] <= groups[-1][-1]["latency_ms"] * near:
            groups[-1].append(point)
        else:
            groups.append([point])
    return [
        {
            "latency_ms": group[-1]["latency_ms"],
            "delta": group[-1]["delta"],
            "text": ", ".join(str(point["front"]) for point in group),
        }
        for group in groups
    ]


def speedups(
    results: Sequence[Result], baselines: Mapping[str, str], *, host: str | None = None
) -> list[dict[str, Any]]:
    """Return a figure per device and shape: speed-ups of one model's results on one host.

    `host` is named in the titles. A figure has title, baseline, description, chart and rows
    (fastest first). All shapes of a device have the same axis range, so that they can be compared.
    """
    figures = []
    devices = sorted({result.device for result in results})
    for device in devices:
        group = [result for result in results if result.device == device]
        by_shape = {shape: speedup_rows(group, shape) for shape in shapes_in(group)}
        all_rows = [row for rows in by_shape.values() for row in rows]
        extent = [row[end] for row in all_rows for end in ("low", "high")]
        for shape, rows in by_shape.items():
            if not rows:
                continue
            title = join_title(shape_label(shape), device if len(devices) > 1 else None, host)
            description = describe_speedups(title, rows)
            drawn = without_records(rows)
            figures.append(
                {
                    "title": title,
                    "baseline": at_place(baselines, device, group[0].host),
                    "description": description,
                    "rows": rows,
                    "chart": speedup_chart(drawn, extent=extent, description=description),
                }
            )
    return figures


def speedup_rows(results: Iterable[Result], shape: Shape) -> list[dict[str, Any]]:
    """Return the variants with a speed-up over the baseline at a shape, fastest first."""
    rows = []
    for result in results:
        row = row_at(result, shape)
        if row and row.speedup and row.speedup.ratio:
            fields = {name: getattr(result, name) for name in ("variant", "engine", "precision")}
            rows.append({**fields, **speedup_mark(row.speedup), "row": row})
    return sorted(rows, key=lambda row: -row["ratio"])


def speedup_mark(speedup: Ratio) -> dict[str, Any]:
    """Return a speed-up as charts draw it: ratio, low, high and tie, and in words."""
    tie = speedup.verdict == "tie"
    return {
        "ratio": speedup.ratio,
        **{end: getattr(speedup, end) or speedup.ratio for end in ("low", "high")},
        "tie": tie,
        "label": f"{'tie ' if tie else ''}{ratio(speedup)}",
        "speedup": ratio(speedup),
        "interval": ratio_interval(speedup),
        "verdict": speedup.verdict,
    }


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

    A row has variant, engine, precision and what `speedup_mark` returns; rows are drawn in the
    given order. The axis also covers the ratios in `extent`.
    """
    covered = [*rows, *({"ratio": ratio} for ratio in (*extent, 1))]
    title = "speed-up over the baseline (logarithmic)"
    x_axis = log_axis(covered, ("low", "ratio", "high"), "ratio", title=title)
    order = nominal("variant", axis=None, sort=[row["variant"] for row in rows])
    # the line at 1 is in pieces, one per row at the height of its mark, not of its name
    pieces = [{"variant": row["variant"], "ratio": 1} for row in rows]
    piece = {"style": "baseline", "size": BASELINE_HEIGHT, "thickness": 1.25, "opacity": 1}
    position, offset = {"x": x_axis, "y": order}, {"yOffset": MARK_OFFSET}
    bar = {"strokeWidth": 2, "opacity": 0.75, **offset}
    span = interval(x_axis, "low", "high", "x", y=order, color=ENGINE)
    tooltip = tooltips("variant", "speedup", "interval", "verdict")
    shaped = {**position, "shape": PRECISION}
    layers = [
        layer("rule", {"style": "row", "yOffset": ROW_HEIGHT / 2}, y=order),
        layer("tick", {**piece, **offset}, rows=pieces, **position),
        layer("rule", bar, **span),
        *marks(shaped, ENGINE, tooltip, "tie", size=95, **offset),
        *labels("variant", {"align": "left", "yOffset": -9}, y=order, x={"value": 0}),
        *labels("label", {"align": "right", "yOffset": -9}, y=order, x={"value": "width"}),
    ]
    return chart(layers, rows, description, height=ROW_HEIGHT * len(rows))
