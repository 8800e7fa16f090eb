"""Report section on the predictions of a model's variants compared with their baseline."""

from collections.abc import Iterable, Mapping
from typing import Any

from msgspec.structs import asdict

from tightrope.report.style.numbers import is_number, points_up, significant
from tightrope.summary.accuracy import Accuracy, FlippedExample
from tightrope.summary.results import Result

# other addresses would be requests
PICTURE = "data:image/jpeg;base64,"


def answers_section(
    measured: Iterable[Result],
    baselines: Mapping[str, str],
    budget_points: float | None,
    thumbnails: Mapping[str, str] | None = None,
) -> dict[str, Any] | None:
    """Return `rows` with one per evaluated variant; None without any.

    A row has result, accuracy, baseline (whether it is a baseline), flipped, and pictures: whether
    one of its flipped examples has a thumbnail. `thumbnails` are those of the model. `too_small`
    has (sentence, variants) for those whose split was too small to detect a drop as large as the
    budget.
    """
    evaluated = [(result, accuracy) for result in measured if (accuracy := result.accuracy)]
    if not evaluated:
        return None
    rows: list[dict[str, Any]] = [
        {
            "result": result,
            "accuracy": accuracy,
            "baseline": result.variant in baselines.values(),
            "flipped": [
                {**asdict(example), "picture": picture(example, thumbnails or {})}
                for example in accuracy.flipped or ()
            ],
        }
        for result, accuracy in evaluated
    ]
    for row in rows:
        row["pictures"] = any(example["picture"] for example in row["flipped"])
    too_small: dict[str, list[str]] = {}
    for result, accuracy in evaluated:
        if sentence := shortfall(accuracy, budget_points):
            too_small.setdefault(sentence, []).append(result.variant)
    return {"rows": rows, "too_small": list(too_small.items())}


def picture(example: FlippedExample, thumbnails: Mapping[str, str]) -> str | None:
    """Return the thumbnail of a flipped example, None without one."""
    uri = thumbnails.get(str(example.index))
    return uri if uri and uri.startswith(PICTURE) else None


def shortfall(accuracy: Accuracy, budget_points: float | None) -> str | None:
    """Return the smallest drop that the split can detect, None if it is large enough."""
    detectable = points_up(accuracy.detectable, accuracy.samples)
    if accuracy.large_enough is not False or not is_number(budget_points) or not detectable:
        return None
    return (
        f"smallest drop detectable with 80 % power: {detectable} points, more than the budget of "
        f"{significant(budget_points, 2)}"
    )
