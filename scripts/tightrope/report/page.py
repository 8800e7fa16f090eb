"""Render the report, one page: its content from a summary, an entry per section."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from operator import itemgetter
from pathlib import Path
from typing import Any

import altair as alt
from jsonschema import Draft7Validator

from tightrope.artifacts.content import made_with_here
from tightrope.artifacts.files import write_bytes
from tightrope.decide.result import Result
from tightrope.report.html import Unknown, html_of
from tightrope.report.sections.activations import activations_section
from tightrope.report.sections.decision import UNKNOWN, fastest, gained, pick
from tightrope.report.sections.family import families_section
from tightrope.report.sections.figures import figures_by_host
from tightrope.report.sections.findings import findings
from tightrope.report.sections.graphs import graphs_section
from tightrope.report.sections.int8 import has_vnni, int8_section, quantization_section
from tightrope.report.sections.steadiness import (
    Remark,
    disturbed_section,
    gpu_memory,
    remarks,
    steadiness,
    streams_section,
)
from tightrope.report.sections.studies import study_remarks, study_sections
from tightrope.report.sections.training import training_section
from tightrope.report.tables import grouped
from tightrope.summary.document import Summary, bundle_command, read_reported
from tightrope.summary.models import poor_baseline, truncation_words
from tightrope.summary.runs import Host

Record = Mapping[str, Any]
NO_LABELS = "no labels: accuracy was not evaluated"
NOT_MEASURED = "nothing was measured"
# other addresses would be requests
PICTURE = "data:image/jpeg;base64,"


def sections(summary: Summary) -> dict[str, Any]:
    """Return the template context: models, measurements, steadiness, charts by figure id.

    `host_names` is empty for a single host. Other entries feed the page's legends and links. Each
    chart is checked against Altair's schema of Vega-Lite, in a tenth of the time in which Altair
    makes its objects of it; raises jsonschema.ValidationError for what would not be drawn.
    """
    results, hosts = summary.results, host_names(summary.hosts)
    names = dict.fromkeys([*summary.models, *(one.model for one in results)])
    models = [model_section(summary, name, hosts) for name in names]
    parts = {
        "models": models,
        "activations": activations_section(summary, hosts),
        "families": families_section(summary),
        "training": training_section(summary.training),
        "studies": study_sections(summary, hosts),
    }
    charts, specifications = charts_by_id(parts, {}), Draft7Validator(alt.load_schema())
    for chart in charts.values():
        specifications.validate(chart)
    statuses = [result.status for result in results]
    return {
        **parts,
        "int8_models": [model for model in models if model["int8"] or model["quantization"]],
        "measurements": measurements(results, models, study_remarks(summary)),
        "steadiness": steadiness(results),
        "fastest": fastest(results),
        "streams": streams_section(results),
        "disturbed": disturbed_section(summary),
        "host_names": hosts,
        "counts": {status: statuses.count(status) for status in ("ok", "failed", "unavailable")},
        "vnni": has_vnni(results, summary.hosts),
        "measured": [result for result in results if result.status == "ok"],
        "charts": charts,
    }


def charts_by_id(content: Any, charts: dict[str, Any]) -> dict[str, Any]:
    """Return `charts`, by id, with that of each figure in the content, which then has the id.

    A figure is a dictionary with a chart, which its description tells in words.
    """
    if isinstance(content, list):
        for one in content:
            charts_by_id(one, charts)
    elif isinstance(content, dict):
        if "chart" in content:
            content["id"] = f"chart-{len(charts) + 1}"
            charts[content["id"]] = content.pop("chart")
            content["description"] = charts[content["id"]]["description"]
        for one in content.values():
            charts_by_id(one, charts)
    return charts


def host_names(hosts: Mapping[str, Host]) -> dict[str, str]:
    """Return processor and GPU of each of several hosts, by key; of one with a name its name too.

    The fingerprint is appended if two hosts are alike. Empty for a single host, which needs no
    name.
    """
    if len(hosts) < 2:
        return {}
    found = {key: " + ".join(filter(None, (one.cpu, one.gpu))) for key, one in hosts.items()}
    names = {
        key: f"{hosts[key].name}: {one}" if hosts[key].name else one for key, one in found.items()
    }
    alike = Counter(names.values())
    return {key: f"{name} ({key})" if alike[name] > 1 else name for key, name in names.items()}


def model_section(summary: Summary, name: str, hosts: Mapping[str, str]) -> dict[str, Any]:
    """Return the report's content on one model; `hosts` are `host_names`.

    `baseline_accuracy` is that of the first device's baseline, to which the budget is relative,
    `largest` the largest size and peak memory, full scale of the bars in the cost table.
    """
    model = summary.models.get(name)
    results: list[Result] = of_model(summary.results, name)
    measured = [result for result in results if result.status == "ok"]
    baselines = model.baselines if model else {}
    picks = [pick(summary, one, measured) for one in of_model(summary.recommendations, name)]
    picks.sort(key=itemgetter("shape"))
    budget = summary.accuracy_budget_points
    judged = {result.variant: result.accuracy for result in measured if result.accuracy}
    deployed: list[Result] = [chosen["result"] for chosen in picks if chosen["result"]]
    bundled = dict.fromkeys(one.variant for one in deployed if one.device == "cpu")
    quantization = of_model(summary.quantization, name)
    profiles, causes = of_model(summary.profiles, name), of_model(summary.causes, name)
    bars = ("size_bytes", "peak_rss_bytes")
    pictures = model.thumbnails if model else {}
    return {
        "name": name,
        "facts": model or Unknown(),
        "baselines": baselines,
        "baseline_accuracy": next(
            (judged[one] for one in baselines.values() if one in judged), None
        ),
        "note": None if judged else NO_LABELS if measured else NOT_MEASURED,
        "judged": bool(judged),
        "goals": of_model(summary.goals, name),
        "costs": of_model(summary.costs, name),
        "truncated": truncation_words(model.truncation) if model else None,
        "poor_baseline": poor_baseline(model, measured) if model else None,
        "answers": [result for result in measured if result.accuracy],
        "thumbnails": {key: one for key, one in pictures.items() if one.startswith(PICTURE)},
        **figures_by_host(measured, baselines, picks, hosts, budget=budget),
        "int8": int8_section(results, model, hosts, budget),
        "quantization": quantization_section(quantization, deployed, hosts, machines=summary.hosts),
        "measured": measured,
        "picks": picks,
        "gained": gained(picks),
        "fastest": fastest([one["result"] for one in picks if one["result"]]),
        "threads": next((one.threads for one in deployed if one.threads), None),
        "bundles": {variant: bundle_command(summary, name, variant) for variant in bundled},
        "largest": {bar: max([getattr(one, bar) or 0 for one in measured] or [0]) for bar in bars},
        "gpu_memory": gpu_memory(measured),
        "uncompared": grouped(
            (one.baseline_failed, one.variant) for one in measured if one.baseline_failed
        ),
        "profiles": profiles,
        "profile": sorted(
            ((one, call) for one in profiles if one.status == "ok" for call in one.shapes),
            key=lambda pair: (pair[1].shape, pair[1].call_s),
        ),
        "explanations": of_model(summary.explanations, name),
        "verifications": causes,
        "causes": sorted(
            ((one, cause) for one in causes if one.status == "ok" for cause in one.causes),
            key=lambda pair: pair[1].shape,
        ),
    }


def of_model(entries: Iterable[Any], name: str) -> list[Any]:
    """Return the entries of one model."""
    return [entry for entry in entries if entry.model == name]


def measurements(
    results: Iterable[Result],
    models: Iterable[Record],
    more: Mapping[tuple[Any, ...], list[Remark]],
) -> list[dict[str, Any]]:
    """Return a row per result and shape; results without measurements also get a row.

    `more` are remarks besides those that follow from the row alone.
    """
    baselines = {(model["name"], name) for model in models for name in model["baselines"].values()}
    rows = [
        {
            "result": result,
            "row": row,
            "baseline": (result.model, result.variant) in baselines,
            "remarks": [
                *remarks(result, row),
                *more.get((result.model, result.variant, result.host, row.shape), ()),
            ],
        }
        for result in results
        for row in result.latency or [UNKNOWN]
    ]

    def order(entry: Record) -> tuple[Any, ...]:
        row, time = entry["row"], entry["row"].paired_s or float("inf")
        return entry["result"].model, not row.shape.batch, row.shape, time

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
    drawn, parts = graphs_section(graphs, target), sections(document)
    count = sum(len(model["graphs"]) for model in drawn)
    told = {"graphs": drawn, "findings": findings(document, parts["studies"], count)}
    content = {**parts, **told, "summary": document}
    html = html_of(content, template=template, page="page.html", style=style, script=script)
    # the page begins with what it was made with
    write_bytes(target, f"<!-- {made_with_here()} -->\n{html}".encode())
