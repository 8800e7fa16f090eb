"""Recommendations of a model with their measurements."""

from collections.abc import Iterable, Mapping
from typing import Any

from tightrope.report.sections.figures import row_at
from tightrope.report.sections.not_run import grouped
from tightrope.report.sections.steadiness import remarks
from tightrope.report.style.numbers import shape_label, shape_of
from tightrope.summary.decision_types import Recommendation

Record = Mapping[str, Any]


def pick(
    recommendation: Recommendation, measured: Iterable[Record], hosts: Mapping[str, str]
) -> dict[str, Any]:
    """Return a recommendation with its measurements, and the rejected variants by reason.

    `host` is its name in `hosts`, None if `hosts` is empty.
    """
    shape = shape_of(recommendation.get("shape") or {})
    variant = recommendation.get("variant")
    result: Record = next((result for result in measured if result["variant"] == variant), {})
    rejected = recommendation.get("rejected") or []
    row = row_at(result, shape) or {}
    return {
        "shape": shape,
        "title": shape_label(shape),
        "host": hosts.get(recommendation.get("host")),
        "variant": variant,
        "why": recommendation.get("why"),
        "equal": recommendation.get("equal") or [],
        "provisional": bool(recommendation.get("provisional")),
        "disturbed": recommendation.get("disturbed") or [],
        "undecided": undecided(recommendation.get("undecided") or [], measured),
        "result": result,
        "row": row,
        "noise": next(
            (remark.reasons for remark in remarks(result, row) if remark.word == "noisy"), []
        ),
        "rejected": grouped((entry.get("reason"), entry.get("variant")) for entry in rejected),
        "rejected_count": len(rejected),
    }


def undecided(variants: Iterable[str], measured: Iterable[Record]) -> list[dict[str, Any]]:
    """Return the faster variants whose accuracy needs more examples, with how many."""
    accuracies = {result["variant"]: result.get("accuracy") or {} for result in measured}
    return [
        {
            "variant": variant,
            "samples": accuracies[variant].get("samples"),
            "samples_needed": accuracies[variant].get("samples_needed"),
        }
        for variant in variants
        if variant in accuracies
    ]
