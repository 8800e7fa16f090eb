"""Figures on INT8: accuracy over calibration samples, and operator sensitivity."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from tightrope.report.charts.int8 import (
    accuracy_over_samples,
    agreement_over_samples,
    sensitivity_chart,
)
from tightrope.report.sections.figures import join_title
from tightrope.report.style.numbers import (
    bounded,
    is_number,
    percentage,
    points,
    points_interval,
    whole,
)

Record = Mapping[str, Any]
MOST_OPERATORS = 40
MARK = "\N{BLACK DIAMOND}"


def calibration_figures(
    rows: Sequence[Record], hosts: Mapping[str, str], budget_points: float | None
) -> list[dict[str, Any]]:
    """Return a figure per engine, device and host, on common axes, without repaired variants.

    A group with one calibration has no panels, but a `sentence`.
    """
    groups: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
    devices = {row["result"].get("device") for row in rows}
    for row in rows:
        point = calibration_point(row)
        if point:
            fields = [row["result"].get(key) for key in ("engine", "device", "host")]
            groups.setdefault(tuple(fields), []).append(point)
    drawn = [group for group in groups.values() if len(calibrations(group)) > 1]
    all_points = [point for group in drawn for point in group]
    return [
        calibration_figure(
            join_title(engine, device if len(devices) > 1 else None, hosts.get(host)),
            group,
            all_points,
            budget_points,
        )
        for (engine, device, host), group in groups.items()
    ]


def calibration_point(row: Record) -> dict[str, Any] | None:
    """Return the point of a row, None if it has a repair or no accuracy change."""
    accuracy = row["accuracy"]
    delta = accuracy.get("delta")
    if row["samples"] is None or row["repair"] or not is_number(delta):
        return None
    ends = [accuracy.get(end) for end in ("delta_low", "delta_high")]
    low, high = (end if is_number(end) else delta for end in ends)
    precision = str(row["result"].get("precision"))
    agreement, samples = accuracy.get("agreement"), accuracy.get("samples")
    agreed = percentage(agreement, samples)
    return {
        "variant": row["result"].get("variant"),
        "method": row["method"],
        "precision": precision,
        "mixed": "-" in precision,
        "samples": row["samples"],
        "delta": 100 * delta,
        "delta_low": 100 * low,
        "delta_high": 100 * high,
        "agreement": 100 * agreement if is_number(agreement) else None,
        "change": f"{points(delta, samples)} points ({points_interval(accuracy) or 'no interval'})",
        "agreed": f"{agreed} %" if agreed else None,
    }


def calibrations(group: Iterable[Record]) -> set[tuple[str, int]]:
    """Return method and samples of each calibration of the points."""
    return {(point["method"], point["samples"]) for point in group}


def calibration_figure(
    title: str, group: list[dict[str, Any]], all_points: list[dict[str, Any]], budget: float | None
) -> dict[str, Any]:
    """Return two stacked panels and their table; the axes cover `all_points`."""
    group.sort(key=lambda point: (point["precision"], point["method"], point["samples"]))
    if len(calibrations(group)) == 1:
        sentence = calibration_sentence(group)
        return {"title": title, "points": group, "panels": [], "sentence": sentence}
    change, agreed = (describe(title, group, field) for field in ("change", "agreed"))
    panels = [
        {
            "description": f"Accuracy change over calibration samples, {change}",
            "chart": accuracy_over_samples(
                group, extent=all_points, budget_points=budget, description=change
            ),
        }
    ]
    if any(point["agreed"] for point in group):
        panels.append(
            {
                "description": f"Agreement with fp32 over calibration samples, {agreed}",
                "chart": agreement_over_samples(group, extent=all_points, description=agreed),
            }
        )
    return {"title": title, "points": group, "panels": panels, "sentence": None}


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
    labels = [
        f"{point['precision']} {point['method']} {point['samples']}: {point[field]}"
        for point in group
        if point[field]
    ]
    return f"{title}: {'; '.join(labels)}."


def sensitivity_figure(name: str, record: Record, searches: Iterable[Record]) -> dict[str, Any]:
    """Return operators alone in INT8, most sensitive first; those that int8-auto left are marked.

    `name` has scheme and calibration; `rows` holds all operators, the chart the first
    MOST_OPERATORS.
    """
    matching = [search for search in searches if search["calibration"] == name.partition("-")[2]]
    in_float = {operator for search in matching for operator in search["in_float"]}
    rows = [{**row, "in_float": row["operator"] in in_float} for row in record["operators"]]
    bars = [sensitivity_bar(row) for row in rows[:MOST_OPERATORS]]
    first = f"{bars[0]['operator']} with {bars[0]['label']} millinats" if bars else "none"
    description = (
        f"Divergence that each of {len(rows)} operators alone in INT8 brings, {name}; the most "
        f"sensitive is {first}. Left in float: {', '.join(sorted(in_float)) or 'none'}."
    )
    return {
        "title": name,
        "samples": record["samples"],
        "rows": rows,
        "drawn": len(bars),
        "searched": bool(matching),
        "left": len(in_float),
        "description": description,
        "chart": sensitivity_chart(bars, description=description),
    }


def sensitivity_bar(row: Record) -> dict[str, Any]:
    """Return the bar of an operator."""
    return {
        "operator": row["operator"],
        "millinats": 1e3 * row["kl"],
        "in_float": row["in_float"],
        "name": f"{MARK} {row['operator']}" if row["in_float"] else row["operator"],
        "label": bounded(row["kl"], 0.001, 1000),
        "agreement": f"{percentage(row['agreement'])} %",
    }
