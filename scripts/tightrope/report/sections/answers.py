"""Report section on the predictions of a model's variants compared with their baseline."""

from collections.abc import Iterable, Mapping
from typing import Any

from tightrope.report.style.numbers import points_up, significant
from tightrope.summary.results import Result

# other addresses would be requests
PICTURE = "data:image/jpeg;base64,"


def answers_section(
    measured: Iterable[Result], budget_points: float, thumbnails: Mapping[str, str]
) -> dict[str, Any] | None:
    """Return the evaluated `results` of a model and its `thumbnails`; None without any result.

    `too_small` has (sentence, variants) for those whose split was too small to detect a drop as
    large as the budget.
    """
    judged = [(result, one) for result in measured if (one := result.accuracy)]
    if not judged:
        return None
    too_small: dict[str, list[str]] = {}
    for result, accuracy in judged:
        detectable = points_up(accuracy.detectable, accuracy.samples)
        if accuracy.large_enough is False and detectable:
            sentence = (
                f"smallest drop detectable with 80 % power: {detectable} points, more than the "
                f"budget of {significant(budget_points, 2)}"
            )
            too_small.setdefault(sentence, []).append(result.variant)
    shown = {index: uri for index, uri in thumbnails.items() if uri.startswith(PICTURE)}
    return {
        "results": [one for one, _ in judged],
        "thumbnails": shown,
        "too_small": [*too_small.items()],
    }
