"""Report section on the predictions of a model's variants compared with their baseline."""

from collections.abc import Iterable, Mapping
from typing import Any

from tightrope.report.style.numbers import is_number, points_up, significant

Record = Mapping[str, Any]


def answers_section(
    measured: Iterable[Record], baselines: Mapping[str, str], budget_points: float | None
) -> dict[str, Any] | None:
    """Return `rows` with one per evaluated variant; None without any.

    A row has result, accuracy, baseline (whether it is a baseline) and flipped. `too_small` has
    (sentence, variants) for those whose split was too small to detect a drop as large as the
    budget.
    """
    judged = [result for result in measured if result.get("accuracy")]
    if not judged:
        return None
    rows = [
        {
            "result": result,
            "accuracy": result["accuracy"],
            "baseline": result["variant"] in baselines.values(),
            "flipped": [
                {**example, **rights(example)}
                for example in result["accuracy"].get("flipped") or ()
            ],
        }
        for result in judged
    ]
    too_small: dict[str, list[str]] = {}
    for row in rows:
        if sentence := shortfall(row["accuracy"], budget_points):
            too_small.setdefault(sentence, []).append(row["result"]["variant"])
    return {"rows": rows, "too_small": list(too_small.items())}


def rights(example: Record) -> dict[str, bool]:
    """Return whether the baseline and the variant are right on a flipped example."""
    return {
        "baseline_right": example["baseline"] == example["label"],
        "right": example["prediction"] == example["label"],
    }


def shortfall(accuracy: Record, budget_points: float | None) -> str | None:
    """Return which drop the split could detect and which not, None if it is large enough."""
    found = points_up(accuracy.get("detectable"), accuracy.get("samples"))
    if accuracy.get("large_enough") is not False or not is_number(budget_points) or not found:
        return None
    return (
        f"this split could have found a drop of {found} points, "
        f"not of {significant(budget_points, 2)}"
    )
