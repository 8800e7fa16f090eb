"""Pareto chart of a family: a point per variant of each of its models, and the front."""

from collections.abc import Mapping, Sequence

from tightrope.records.family import engine_name, model_and_variant
from tightrope.statistics import Interval
from tightrope.summary.accuracy import change_of
from tightrope.summary.family_accuracy import Judged, accuracy_against
from tightrope.summary.family_rounds import FamilyRounds
from tightrope.summary.family_types import FamilyPoint
from tightrope.summary.ratios import interval_of
from tightrope.summary.result_types import LatencyRow, Result, Shape
from tightrope.summary.results import shape_of

# latency rows of a shape by model and variant
Rows = Mapping[tuple[str, str], LatencyRow]


def rows_at(results: Sequence[Result], host: str, device: str, shape: Shape) -> Rows:
    """Return the rows of all models on a host and device at a shape."""
    return {
        (result["model"], result["variant"]): row
        for result in results
        if (result["host"], result["device"]) == (host, device)
        for row in result["latency"]
        if shape_of(row) == shape
    }


def family_points(
    rounds: FamilyRounds,
    members: Sequence[str],
    rows: Rows,
    judged: Judged,
    baseline: tuple[str, str],
    budget: float,
) -> list[FamilyPoint]:
    """Return the variants of the members that have a time and an accuracy, the fastest first.

    `baseline` is the root's, by model and variant.
    """
    found: list[FamilyPoint] = []
    for (model, variant), row in rows.items():
        name = engine_name(model, variant)
        accuracy = accuracy_against(judged.get((model, variant)), judged.get(baseline), budget)
        change = change_of(accuracy) if accuracy and model in members else None
        raced = rounds.seconds(name)
        time = raced or scaled(model, row, rows, rounds)
        if time is None or change is None:
            continue
        found.append(
            {
                "model": model,
                "variant": variant,
                "recommended": rounds.chosen.get(model) == name,
                "raced": raced is not None,
                "call_s": time.value,
                "low": time.low,
                "high": time.high,
                "delta": change.value,
                "delta_low": change.low,
                "delta_high": change.high,
                "front": False,
            }
        )
    found.sort(key=lambda point: (point["call_s"], -point["delta"]))
    return with_front(found)


def scaled(model: str, row: LatencyRow, rows: Rows, rounds: FamilyRounds) -> Interval | None:
    """Return the time of a variant that was not timed with those of the other models.

    Its interval is that of its speed-up over its model's baseline.
    """
    name = rounds.chosen.get(model)
    here = rounds.seconds(name) if name else None
    there = rows[model_and_variant(name)] if name and model_and_variant(name) in rows else None
    own = row["paired_s"]
    if here is None or there is None or not there["paired_s"] or own is None:
        return None
    value = own / there["paired_s"] * here.value
    faster = interval_of(row["speedup"])
    if faster is None or not faster.low:
        return Interval(value, value, value)
    return Interval(value, value * faster.value / faster.high, value * faster.value / faster.low)


def with_front(points: Sequence[FamilyPoint]) -> list[FamilyPoint]:
    """Return the points with `front`, by their estimates: no other is as good and better in one.

    `points` are the fastest first, of equally fast ones the most accurate first.
    """
    best = float("-inf")
    for point in points:
        point["front"] = point["delta"] > best
        best = max(best, point["delta"])
    return [*points]
