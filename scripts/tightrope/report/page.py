"""Render the report, one page: its content from a summary, an entry per section."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import altair as alt
from jsonschema import Draft7Validator

from tightrope.artifacts.content import made_with_here
from tightrope.artifacts.files import write_bytes
from tightrope.report.html import Unknown, read_template
from tightrope.report.sections.activations import activations_section
from tightrope.report.sections.answers import answers_section
from tightrope.report.sections.decision import UNKNOWN, goal_section, grouped, not_run, pick
from tightrope.report.sections.family import families_section
from tightrope.report.sections.figures import figures_by_host
from tightrope.report.sections.gpu import gpu_memory, streams_section
from tightrope.report.sections.graphs import graphs_section
from tightrope.report.sections.int8 import has_vnni, int8_section
from tightrope.report.sections.quantize_or_not import quantization_section
from tightrope.report.sections.requested import (
    Place,
    asked_for,
    measured_on_request,
    of_model,
    place_of,
)
from tightrope.report.sections.steadiness import Remark, disturbed_section, remarks, steadiness
from tightrope.report.sections.studies import study_remarks, study_sections
from tightrope.report.sections.training import training_section
from tightrope.report.style.numbers import sizes
from tightrope.summary.accuracy import poor_baseline, truncation_words
from tightrope.summary.document import Summary, bundle_command, read_reported
from tightrope.summary.result_types import Accuracy, Host, Result

Record = Mapping[str, Any]
NO_LABELS = "no labels: accuracy was not evaluated"
NOT_MEASURED = "nothing was measured"
PAGE = "page.html"


def sections(summary: Summary) -> dict[str, Any]:
    """Return the template context: models, measurements, not_run, steadiness, charts by figure id.

    `host_names` is empty for a single host. Other entries feed the page's legends and links.
    """
    results = summary.results
    hosts = host_names(summary.hosts)
    models = [model_section(summary, name, hosts) for name in model_names(summary)]
    training = training_section(summary.training)
    activations = activations_section(summary, hosts)
    families = families_section(summary, hosts)
    figures = [figure for model in models for figure in model_figures(model)]
    tables = [*activations, *families, *(training or {}).get("tables", ())]
    figures += [figure for table in tables for figure in table["figures"]]
    studies = study_sections(summary, hosts)
    figures += [one for study in studies for model in study["models"] for one in model["figures"]]
    statuses = [result.status for result in results]
    return {
        "models": models,
        "int8_models": [model for model in models if model["int8"] or model["quantization"]],
        "measurements": measurements(results, models, study_remarks(summary)),
        "steadiness": steadiness(results),
        "streams": streams_section(results),
        "disturbed": disturbed_section(summary),
        "not_run": not_run(results),
        "host_names": hosts,
        **asked_for(summary),
        "activations": activations,
        "families": families,
        "studies": studies,
        "training": training,
        "training_failed": sum(one.status == "failed" for one in summary.training),
        "training_not_run": not_run(summary.training),
        "counts": {status: statuses.count(status) for status in ("ok", "failed", "unavailable")},
        "vnni": has_vnni(results, summary.hosts),
        "engines": {result.engine for result in results if result.status == "ok"},
        "precisions": {result.precision for result in results if result.status == "ok"},
        "charts": charts_by_id(figures),
    }


def model_names(summary: Summary) -> list[str]:
    """Return the models in summary order, those without an entry in `models` last."""
    named = [one.model for one in summary.results]
    return list(dict.fromkeys([*summary.models, *named]))


def charts_by_id(figures: Iterable[dict[str, Any]]) -> dict[str, Any]:
    """Return the chart of each figure by the id that the figure gets in its place.

    Each is checked against Altair's schema of Vega-Lite, in a tenth of the time in which Altair
    makes its objects of it; raises jsonschema.ValidationError for what would not be drawn.
    """
    charts, specifications = {}, Draft7Validator(alt.load_schema())
    for number, figure in enumerate(figures, start=1):
        figure["id"] = f"chart-{number}"
        charts[figure["id"]] = figure.pop("chart")
        specifications.validate(charts[figure["id"]])
    return charts


def model_figures(model: Record) -> list[dict[str, Any]]:
    """Return everything that has its own chart, in page order."""
    figures = [*model["trade_offs"], *model["speedups"]]
    if model["int8"]:
        figures += [panel for figure in model["int8"]["figures"] for panel in figure["panels"]]
        figures += model["int8"]["sensitivities"]
    return figures


def host_names(hosts: Mapping[str, Host]) -> dict[str, str]:
    """Return processor and GPU of each of several hosts, by key; of one with a name its name too.

    The fingerprint is appended if two hosts are alike. Empty for a single host, which needs no
    name.
    """
    names = {key: processors(host) for key, host in hosts.items()}
    duplicates = [name for name in names.values() if list(names.values()).count(name) > 1]
    named = {key: f"{name} ({key})" if name in duplicates else name for key, name in names.items()}
    return named if len(hosts) > 1 else {}


def processors(host: Host) -> str:
    """Return processor and GPU of a host, after the name that the configuration gives to it."""
    found = " + ".join(filter(None, (host.cpu, host.gpu)))
    return f"{host.name}: {found}" if host.name else found


def model_section(summary: Summary, name: str, hosts: Mapping[str, str]) -> dict[str, Any]:
    """Return the report's content on one model; `hosts` are `host_names`."""
    model = summary.models.get(name)
    results: list[Result] = of_model(summary.results, name)
    measured = [result for result in results if result.status == "ok"]
    quantization = of_model(summary.quantization, name)
    baselines = model.baselines if model else {}
    recommendations = of_model(summary.recommendations, name)
    picks = [pick(recommendation, measured, hosts) for recommendation in recommendations]
    picks.sort(key=lambda chosen: sizes(chosen["shape"]))
    budget = summary.accuracy_budget_points
    evaluated = any(result.accuracy for result in measured)
    deployed: list[Result] = [chosen["result"] for chosen in picks if chosen["result"]]
    # of what runs on a CPU
    bundled = [one.variant for one in deployed if one.device == "cpu"]
    return {
        "name": name,
        "facts": model or Unknown(),
        "baselines": baselines,
        "baseline_accuracy": baseline_accuracy(measured, baselines),
        "note": None if evaluated else NO_LABELS if measured else NOT_MEASURED,
        "judged": evaluated,
        "goal": goal_section(summary, name, hosts),
        "truncated": truncation_words(model.truncation) if model else None,
        "poor_baseline": poor_baseline(model, measured) if model else None,
        "answers": answers_section(measured, baselines, budget, model.thumbnails if model else {}),
        "int8": int8_section(results, model, hosts, budget),
        "quantization": quantization_section(quantization, deployed, hosts, machines=summary.hosts),
        "measured": measured,
        "picks": picks,
        "bundles": [bundle_command(summary, name, variant) for variant in dict.fromkeys(bundled)],
        "variants": list(dict.fromkeys(chosen["variant"] for chosen in picks if chosen["variant"])),
        "largest": largest(measured),
        "gpu_memory": gpu_memory(measured),
        **figures_by_host(measured, baselines, picks, hosts, budget=budget),
        "uncompared": grouped(
            (result.baseline_failed, result.variant)
            for result in measured
            if result.baseline_failed
        ),
        **measured_on_request(summary, name, hosts),
    }


def baseline_accuracy(measured: Iterable[Result], baselines: Mapping[str, str]) -> Accuracy | None:
    """Return the accuracy of the first device's baseline, to which the budget is relative."""
    found = {result.variant: result.accuracy for result in measured if result.accuracy}
    return next((found[name] for name in baselines.values() if name in found), None)


def largest(measured: Sequence[Result]) -> dict[str, float]:
    """Return the largest size and peak memory, full scale of the bars in the cost table."""
    fields = ("size_bytes", "peak_rss_bytes")
    return {
        field: max((getattr(one, field) or 0 for one in measured), default=0) for field in fields
    }


def measurements(
    results: Iterable[Result], models: Iterable[Record], more: Mapping[Place, list[Remark]]
) -> list[dict[str, Any]]:
    """Return a row per result and shape; results without measurements also get a row.

    `more` are remarks besides those that follow from the row alone.
    """
    baselines = {(model["name"], name) for model in models for name in model["baselines"].values()}
    rows = []
    for result in results:
        baseline = (result.model, result.variant) in baselines
        for row in result.latency or [UNKNOWN]:
            rows.append(
                {
                    "result": result,
                    "row": row,
                    "shape": row.shape,
                    "baseline": baseline,
                    "remarks": [*remarks(result, row), *more.get(place_of(result, row.shape), ())],
                }
            )

    def order(entry: Record) -> tuple[Any, ...]:
        time = entry["row"].paired_s or float("inf")
        return entry["result"].model, not entry["shape"].batch, sizes(entry["shape"]), time

    return sorted(rows, key=order)


def render_page(
    summary: Path,
    target: Path,
    *,
    template: Sequence[Path],
    style: Path,
    script: Path,
    graphs: Sequence[Path] = (),
) -> None:
    """Write the report on `summary` to `target`, byte-identical for identical inputs.

    `template` holds page.html and the parts that it includes by file name, `graphs` the graph
    records to show. Raises ArtifactError if the summary or a graph record is missing, not JSON, of
    another schema or not of its types.
    """
    document = read_reported(summary)
    known = read_template(template, style, script)
    parts = sections(document)
    content = {"summary": document, **parts}
    pictures = graphs_section(graphs, target)
    html = known.html(PAGE, content, charts=parts["charts"], graphs=pictures)
    # the page begins with what it was made with
    write_bytes(target, f"<!-- {made_with_here()} -->\n{html}".encode())
