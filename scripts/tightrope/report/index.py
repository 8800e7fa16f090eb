"""Content of the index of a report of many results: what to deploy of each model, and its page."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from tightrope.report.context import charts_by_id, host_names, measured_values
from tightrope.report.sections.activations import activations_section
from tightrope.report.sections.cascades import cascades_section
from tightrope.report.sections.family import families_section
from tightrope.report.sections.int8 import has_vnni
from tightrope.report.sections.not_run import grouped, not_run
from tightrope.report.sections.steadiness import disturbed_section
from tightrope.report.sections.training import training_section
from tightrope.summary.document import Summary

Record = Mapping[str, Any]
STATUSES = ("ok", "failed", "unavailable")
# what else of a model can fail, besides its results
ALSO_FAILED = ("traffic", "throughput", "profiles", "causes", "idleness", "builds")
# reasons for which the index has room; all are on the pages of the models
REASONS = 100


def model_row(parts: Mapping[str, Any], link: str | None) -> dict[str, Any]:
    """Return what the index says of a model; `parts` are the sections of its page at `link`.

    `failed` counts its failed results and other measurements.
    """
    (model,) = parts["models"]
    others = sum(parts[f"{kind}_failed"] for kind in ALSO_FAILED)
    named = ("name", "facts", "baselines", "baseline_accuracy", "picks", "goal", "note")
    return {
        **{key: model[key] for key in (*named, "bundles", "poor_baseline", "quantization")},
        "link": link,
        "counts": parts["counts"],
        "failed": parts["counts"]["failed"] + others,
    }


def index_content(summary: Summary, rows: Sequence[Record]) -> dict[str, Any]:
    """Return the content of the index; `rows` are the `model_row` of each model.

    `compared` are the sections that compare models, `not_run` the reasons of failed and of
    unavailable results by how many have each.
    """
    hosts = host_names(summary.get("hosts") or {})
    results = summary.get("results") or []
    activations = activations_section(summary, hosts)
    families = families_section(summary, hosts)
    training = training_section(summary.get("training") or [])
    tables = [*activations, *families, *(training or {}).get("tables", ())]
    return {
        "summary": summary,
        "index": None,
        "rows": rows,
        # other parts of the template name each model; on the index its row is enough
        "models": (),
        "steadiness": None,
        "host_names": hosts,
        "counts": {status: sum(row["counts"][status] for row in rows) for status in STATUSES},
        "failed": sum(row["failed"] for row in rows),
        "disturbed": shortened(disturbed_section(summary)),
        "not_run": {status: reasons_of(results, status, rows) for status in STATUSES[1:]},
        "activations": activations,
        "families": families,
        "cascades": cascades_section(summary.get("cascades") or [], hosts),
        "training": training,
        "training_not_run": not_run(training["failed"] if training else []),
        "vnni": has_vnni(results, summary.get("hosts") or {}),
        "devices": {result.get("device") for result in results},
        "engines": measured_values(results, "engine"),
        "precisions": measured_values(results, "precision"),
        "charts": charts_by_id(figure for table in tables for figure in table["figures"]),
    }


def shortened(disturbed: dict[str, Any] | None) -> dict[str, Any] | None:
    """Return the section on other load with as many reasons as the index has room for."""
    if disturbed is None or len(disturbed["reasons"]) <= REASONS:
        return disturbed
    first = disturbed["reasons"][:REASONS]
    others = len(disturbed["reasons"]) - REASONS
    return {**disturbed, "reasons": [*first, f"{others} other reasons, on the pages of the models"]}


def reasons_of(results: Iterable[Record], status: str, rows: Iterable[Record]) -> dict[str, Any]:
    """Return the commonest `reasons` of this status, each with (row, variants) of its models.

    `more` counts the other reasons.
    """
    known = {row["name"]: row for row in rows}
    groups = grouped(
        (result.get("reason"), (result.get("model"), result.get("variant")))
        for result in results
        if result.get("status") == status
    )
    groups.sort(key=lambda group: -len(group[1]))
    return {
        "reasons": [
            (reason, [(known[model], variants) for model, variants in grouped(pairs)])
            for reason, pairs in groups[:REASONS]
        ],
        "more": max(0, len(groups) - REASONS),
    }
