"""The decisions of a model: its recommendations, its goal, and what did not run."""

from collections.abc import Iterable, Mapping
from typing import Any

from msgspec.structs import asdict

from tightrope.records.record import TRAINING
from tightrope.report.sections.figures import row_at
from tightrope.report.sections.steadiness import remarks
from tightrope.report.style.numbers import shape_label
from tightrope.summary.candidates import Cost
from tightrope.summary.document import Summary
from tightrope.summary.goal import GoalDecision
from tightrope.summary.measured import Shape
from tightrope.summary.recommend import Recommendation
from tightrope.summary.results import LatencyRow, Result

# of a latency without a measurement
UNKNOWN = LatencyRow(Shape(batch=0))
NOT_TIMED = "a job before its build was not timed"


def pick(
    recommendation: Recommendation, measured: Iterable[Result], hosts: Mapping[str, str]
) -> dict[str, Any]:
    """Return a recommendation with its measurements, and the rejected variants by reason.

    `host` is its name in `hosts`, None if `hosts` is empty.
    """
    shape, rejected = recommendation.shape, recommendation.rejected
    result = next((one for one in measured if one.variant == recommendation.variant), None)
    row = row_at(result, shape) if result else None
    told = remarks(result, row) if result and row else []
    return {
        **asdict(recommendation),
        "shape": shape,
        "title": shape_label(shape),
        "host": hosts.get(recommendation.host),
        "undecided": undecided(recommendation.undecided, measured),
        "result": result,
        "row": row or UNKNOWN,
        "noise": next((remark.reasons for remark in told if remark.word == "noisy"), []),
        "rejected": grouped((one.reason, one.variant) for one in rejected),
        "rejected_count": len(rejected),
    }


def undecided(variants: Iterable[str], measured: Iterable[Result]) -> list[dict[str, Any]]:
    """Return the faster variants whose accuracy needs more examples, with how many."""
    accuracies = {result.variant: result.accuracy for result in measured}
    known = ((name, accuracies.get(name)) for name in variants)
    return [{**asdict(accuracy), "variant": name} for name, accuracy in known if accuracy]


def goal_section(summary: Summary, model: str, hosts: Mapping[str, str]) -> dict[str, Any] | None:
    """Return `decisions` and `costs` of a model, None without any.

    `variants` are those chosen, each once; `hosts` are names of several hosts by fingerprint.
    """
    decisions = [decision_row(one, hosts) for one in summary.goals if one.model == model]
    costs = [cost_row(one, hosts) for one in summary.costs if one.model == model]
    if not decisions and not costs:
        return None
    return {
        "decisions": decisions,
        "variants": list(dict.fromkeys(one["variant"] for one in decisions if one["variant"])),
        "provisional": any(one["provisional"] for one in decisions),
        "priced": any(one["cost_per_million"] is not None for one in costs),
        "costs": costs,
    }


def decision_row(decision: GoalDecision, hosts: Mapping[str, str]) -> dict[str, Any]:
    """Return a decision with its rejected variants by reason.

    Those at a shape stand with the recommendation there, so `rejected` is empty.
    """
    rejected = [] if decision.shape else decision.rejected
    return {
        **{name: getattr(decision, name) for name in ("variant", "sentence", "provisional")},
        "host": hosts.get(decision.host),
        "rejected": grouped((one.reason, one.variant) for one in rejected),
        "rejected_count": len(rejected),
    }


def cost_row(cost: Cost, hosts: Mapping[str, str]) -> dict[str, Any]:
    """Return a cost with its host where there are several, and why it has no break-even."""
    shape, why = shape_label(cost.shape), no_break_even(cost)
    return {**asdict(cost), "shape": shape, "host": hosts.get(cost.host), "no_break_even": why}


def no_break_even(cost: Cost) -> str | None:
    """Return why there is no break-even, None where there is one."""
    if cost.break_even_inferences is not None:
        return None
    if cost.saved_s is None:
        return "not compared"
    if cost.saved_s <= 0:
        return "never: nothing is saved"
    return NOT_TIMED


def grouped(pairs: Iterable[tuple[Any, Any]]) -> list[tuple[Any, list[Any]]]:
    """Return (reason, variants) pairs, in order of first appearance."""
    groups: dict[Any, list[Any]] = {}
    for reason, variant in pairs:
        groups.setdefault(reason or "no reason was recorded", []).append(variant)
    return list(groups.items())


def not_run(results: Iterable[Any]) -> dict[str, list[tuple[str, list[Any]]]]:
    """Return (reason, [(model, variants)]) for `failed` and for `unavailable` results.

    A training has no variant.
    """
    listed = list(results)
    return {
        status: [
            (reason, grouped(pairs))
            for reason, pairs in grouped(
                (one.reason, (one.model, getattr(one, "variant", TRAINING)))
                for one in listed
                if one.status == status
            )
        ]
        for status in ("failed", "unavailable")
    }
