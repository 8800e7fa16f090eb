"""Figures of a model for each host: accuracy against latency.

Times of two hosts are never in one figure.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from tightrope.decide.result import LatencyRow, Result, Shape, interval_of
from tightrope.report.charts import accuracy_latency_chart
from tightrope.report.style.numbers import milliseconds, points, points_interval, shape_label
from tightrope.report.tables import grouped
from tightrope.statistics import Interval

Record = Mapping[str, Any]
PARTS = ("variant", "engine", "precision")  # of a result, in its mark


def shapes_in(results: Iterable[Result]) -> list[Shape]:
    """Return every measured shape, smallest first."""
    return sorted({row.shape for result in results for row in result.latency})


def join_title(*parts: str | None) -> str:
    """Join the non-empty parts with dots."""
    return " \N{MIDDLE DOT} ".join(filter(None, parts))


def figures_by_host(
    measured: Iterable[Result],
    baselines: Mapping[str, str],
    picks: Sequence[Record],
    hosts: Mapping[str, str],
    *,
    budget: float | None,
) -> dict[str, Any]:
    """Return the hosts of the results, and the figures of each host."""
    groups = grouped((result.host, result) for result in measured)
    found: dict[str, Any] = {"hosts": list(groups), "trade_offs": []}
    for key, group in groups.items():
        host = hosts.get(key or "")
        found["trade_offs"] += trade_offs(group, baselines, picks, budget, host=host)
    return found


def trade_offs(
    results: Sequence[Result],
    baselines: Mapping[str, str],
    picks: Sequence[Record],
    budget_points: float | None,
    *,
    host: str | None = None,
) -> list[dict[str, Any]]:
    """Return a figure per shape: accuracy against latency of one model's results on one host.

    `picks` have what is recommended at a shape, and the variants equal to it in speed; `host` is
    named in the titles. A figure has title, chart, points (fastest first, the Pareto front
    numbered) and unplaced (variants without a time).
    """
    figures = []
    for shape in shapes_in(results):
        judged = [result for result in results if result.accuracy]
        evaluated = [(one, row) for one in judged if (row := one.at(shape))]
        placed = [point for pair in evaluated if (point := trade_off_point(*pair, baselines))]
        if not placed:
            continue
        chosen = [pick for pick in picks if pick["shape"] == shape]
        deploy = {pick["variant"] for pick in chosen}
        number_front(placed, deploy.union(*(pick["equal"] for pick in chosen)))
        for point in placed:
            point["deploy"] = point["variant"] in deploy
        title = join_title(shape_label(shape), host)
        chart = accuracy_latency_chart(
            without_records(placed),
            budget_points=budget_points,
            description=describe_trade_off(title, placed),
        )
        drawn = {point["variant"] for point in placed}
        unplaced = [one.variant for one, _ in evaluated if one.variant not in drawn]
        figures.append({"title": title, "points": placed, "unplaced": unplaced, "chart": chart})
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
        **{name: getattr(result, name) for name in PARTS},
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

    A point is dominated by one that is no slower and more accurate, or as accurate and faster.
    Variants that are `equal` in speed do not dominate each other, and a variant with undecided
    accuracy dominates none.
    """
    placed.sort(key=lambda point: (point["latency_ms"], -point["delta"]))
    # the most accurate point so far, the fastest of several: of all, and of those not in `equal`
    best_of_all = best_of_others = (-math.inf, 0.0)
    number = 0
    for point in placed:
        merit, is_equal = (point["delta"], -point["latency_ms"]), point["variant"] in equal
        on_front = merit >= (best_of_others if is_equal else best_of_all)
        number += on_front
        point["front"] = number if on_front else None
        if point["accuracy"].verdict != "undecided":
            best_of_all = max(best_of_all, merit)
            if not is_equal:
                best_of_others = max(best_of_others, merit)


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
