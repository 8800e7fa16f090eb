"""The recommendations for a model, and what did not run."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from msgspec.structs import asdict

from tightrope.records.record import TRAINING
from tightrope.report.sections.figures import row_at
from tightrope.report.sections.steadiness import remarks
from tightrope.report.tables import grouped
from tightrope.summary.measured import Shape
from tightrope.summary.recommend import Recommendation
from tightrope.summary.results import LatencyRow, Result

# of a latency without a measurement
UNKNOWN = LatencyRow(Shape(batch=0))


def pick(
    recommendation: Recommendation, measured: Sequence[Result], hosts: Mapping[str, str]
) -> dict[str, Any]:
    """Return a recommendation with its measurements.

    `host` is its name in `hosts`, None if `hosts` is empty. `undecided` are the faster variants
    whose accuracy needs more examples, each with its accuracy.
    """
    shape, chosen = recommendation.shape, recommendation.variant
    result = next((one for one in measured if one.variant == chosen), None)
    row = row_at(result, shape) if result else None
    told = remarks(result, row) if result and row else []
    accuracies = {one.variant: one.accuracy for one in measured}
    undecided = [(one, accuracies.get(one)) for one in recommendation.undecided]
    return {
        **asdict(recommendation),
        "host": hosts.get(recommendation.host),
        "undecided": [pair for pair in undecided if pair[1]],
        "result": result,
        "row": row or UNKNOWN,
        "noise": next((remark.reasons for remark in told if remark.word == "noisy"), []),
    }


def not_run(results: Iterable[Any]) -> dict[str, list[tuple[str, list[Any]]]]:
    """Return (reason, [(model, variants)]) for `failed` and for `unavailable` results.

    A training has no variant.
    """
    by_status = grouped((one.status, one) for one in results)
    found = {}
    for status in ("failed", "unavailable"):
        reasons = grouped(
            (one.reason or "no reason was recorded", (one.model, getattr(one, "variant", TRAINING)))
            for one in by_status.get(status, [])
        )
        found[status] = [(reason, [*grouped(pairs).items()]) for reason, pairs in reasons.items()]
    return found
