"""Figure of a family at one shape: accuracy against latency of all variants of all models."""

from collections.abc import Mapping, Sequence
from typing import Any

from tightrope.report.charts.family import family_chart
from tightrope.report.style.numbers import milliseconds, points
from tightrope.variants import parse

Record = Mapping[str, Any]


def family_figure(
    title: str, shape: Record, members: Sequence[Record], budget_points: float | None
) -> dict[str, Any] | None:
    """Return the figure of a shape with title, description, chart and points, None without any."""
    marks = [mark_of(point) for point in shape.get("points") or ()]
    if not marks:
        return None
    models = [member["model"] for member in members]
    description = described(title, marks)
    chart = family_chart(
        marks,
        links_of(marks, members),
        models,
        budget_points=budget_points,
        description=description,
    )
    return {"title": title, "description": description, "points": marks, "chart": chart}


def mark_of(point: Record) -> dict[str, Any]:
    """Return a mark of the chart."""
    ends = (points(point[end]) for end in ("delta_low", "delta_high"))
    return {
        **{name: point[name] for name in ("model", "variant", "recommended", "front", "raced")},
        "precision": parse(point["variant"]).precision,
        "latency_ms": 1e3 * point["call_s"],
        "latency_low": 1e3 * point["low"],
        "latency_high": 1e3 * point["high"],
        **{name: 100 * point[name] for name in ("delta", "delta_low", "delta_high")},
        "latency": f"{milliseconds(point['call_s'])} ms",
        "change": f"{points(point['delta'])} points ({' to '.join(map(str, ends))})",
    }


def links_of(marks: Sequence[Record], members: Sequence[Record]) -> list[dict[str, Any]]:
    """Return the ends of a line from each parent's recommended variant to its child's."""
    places = {mark["model"]: mark for mark in marks if mark["recommended"]}
    pairs = [(member.get("parent"), member["model"]) for member in members]
    return [
        {name + end: place[name] for place, end in ends for name in ("latency_ms", "delta")}
        for parent, child in pairs
        if parent in places and child in places
        for ends in [((places[parent], ""), (places[child], "_child"))]
    ]


def described(title: str, marks: Sequence[Record]) -> str:
    """Describe the chart in words."""
    front = "; ".join(
        f"{mark['model']} {mark['variant']} ({mark['latency']}, {mark['change']})"
        for mark in marks
        if mark["front"]
    )
    return (
        f"Accuracy change against latency of {len(marks)} variants at {title}. "
        f"On the Pareto front, fastest first: {front}."
    )
