"""The goal of a model in the report: its decisions, and cost and break-even of each variant."""

from collections.abc import Mapping
from typing import Any

from tightrope.report.sections.not_run import grouped
from tightrope.report.style.numbers import milliseconds, shape_label, shape_of, significant, whole

Record = Mapping[str, Any]
NOT_TIMED = "a job before its build was not timed"


def goal_section(summary: Record, model: str, hosts: Mapping[str, str]) -> dict[str, Any] | None:
    """Return `decisions` and `costs` of a model, None without any.

    `variants` are those chosen, each once; `hosts` are names of several hosts by fingerprint.
    """
    decisions = [
        decision_row(one, hosts) for one in summary.get("goals") or () if one["model"] == model
    ]
    costs = [cost_row(one, hosts) for one in summary.get("costs") or () if one["model"] == model]
    if not decisions and not costs:
        return None
    return {
        "decisions": decisions,
        "variants": list(dict.fromkeys(one["variant"] for one in decisions if one["variant"])),
        "provisional": any(one["provisional"] for one in decisions),
        "priced": any(one["cost"] is not None for one in costs),
        "costs": costs,
    }


def decision_row(decision: Record, hosts: Mapping[str, str]) -> dict[str, Any]:
    """Return a decision with its rejected variants by reason.

    Those at a shape stand with the recommendation there, so `rejected` is empty.
    """
    rejected = [] if decision["shape"] else decision["rejected"]
    return {
        **{name: decision[name] for name in ("variant", "sentence", "provisional")},
        "host": hosts.get(decision["host"]),
        "rejected": grouped((one["reason"], one["variant"]) for one in rejected),
        "rejected_count": len(rejected),
    }


def cost_row(cost: Record, hosts: Mapping[str, str]) -> dict[str, Any]:
    """Return a cost with its numbers formatted, None where not known."""
    at_most = cost["break_even_at_most"]
    return {
        "variant": cost["variant"],
        "shape": shape_label(shape_of(cost["shape"])),
        "host": hosts.get(cost["host"]),
        "cost": significant(cost["cost_per_million"]),
        "spent_s": significant(cost["spent_s"]),
        "not_spent": NOT_TIMED,
        "saved_ms": milliseconds(cost["saved_s"]),
        "break_even": whole(cost["break_even_inferences"]),
        "no_break_even": no_break_even(cost),
        "at_most": None if at_most is None else whole(at_most),
    }


def no_break_even(cost: Record) -> str | None:
    """Return why there is no break-even, None where there is one."""
    if cost["break_even_inferences"] is not None:
        return None
    if cost["saved_s"] is None:
        return "not compared"
    if cost["saved_s"] <= 0:
        return "never: nothing is saved"
    return NOT_TIMED
