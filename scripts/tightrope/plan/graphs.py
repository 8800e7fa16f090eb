"""ONNX graphs of a run that the report shows, and the inputs of each description."""

import re
from typing import Any

from tightrope.plan.job_inputs import Document, from_checkpoint, quantized_onnx, scheme_of
from tightrope.variants import AUTO, CALIBRATION, GIVEN, SCHEMES, Variant, either

Jobs = list[tuple[str, Variant]]
EXPORTED, SIMPLIFIED, QUANTIZED = "exported", "simplified", "quantized"
# a graph is named by its stage, or by the name of a quantized ONNX file
GRAPH = rf"{EXPORTED}|{SIMPLIFIED}|(?:{either(SCHEMES)})-{CALIBRATION}(?:-auto)?"
FILES = {EXPORTED: "model.onnx", SIMPLIFIED: "model.simplified.onnx"}


def graph_columns(config: Document, jobs: Jobs) -> dict[str, list[str]]:
    """Return model and graph of each ONNX file that the report shows, as wildcard values of a path.

    Only files that these jobs produce anyway. Of quantized files that differ only in method and
    samples the first, and every file that a search mixed.
    """
    variants: dict[str, list[Variant]] = {}
    for model, variant in jobs:
        variants.setdefault(model, []).append(variant)
    found = [
        (model, graph) for model, own in variants.items() for graph in graphs_of(config, model, own)
    ]
    return {"model": [model for model, _ in found], "graph": [graph for _, graph in found]}


def graphs_of(config: Document, model: str, variants: list[Variant]) -> list[str]:
    """Return the graphs to draw of one model with these variants."""
    fed = [one for one in variants if is_fed_by_onnx(config, one)]
    wanted = set(config["graphs"])
    # the quantized file of a model that is quantized already
    if QUANTIZED in wanted and any(one.precision == GIVEN for one in variants):
        wanted.add(EXPORTED)
    plain = [graph for graph in FILES if graph in wanted and fed]
    first: dict[tuple[Any, ...], str] = {}
    for variant in fed if QUANTIZED in config["graphs"] else ():
        if variant.scheme is not None:
            name = quantized_onnx(config, model, variant).rpartition("/")[2].removesuffix(".onnx")
            mixed = name if variant.precision == AUTO else None
            first.setdefault((scheme_of(config, variant), variant.repair, mixed), name)
    return plain + list(first.values())


def is_fed_by_onnx(config: Document, variant: Variant) -> bool:
    """Return whether `variant` needs the simplified ONNX file."""
    return variant.calibration is not None or not from_checkpoint(config, variant.engine)


def graph_inputs(searches: dict[str, list[str]], wildcards: Any) -> dict[str, str]:
    """Return the ONNX file of a graph, and with int8-auto the costs of its operators.

    `searches` are the `search_columns` of the plan. Costs belong to a scheme and to operator names,
    which do not change after simplification.
    """
    model, graph = wildcards.model, wildcards.graph
    folder = f"artifacts/{model}"
    onnx = f"{folder}/{FILES.get(graph, f'quantized/{graph}.onnx')}"
    measured = [
        (scheme, calibration)
        for name, scheme, calibration in zip(*searches.values(), strict=True)
        if name == model and (graph == SIMPLIFIED or graph.startswith(f"{scheme}-"))
    ]
    measured.sort(key=lambda one: not re.match("-".join(one) + r"(-|$)", graph))
    costs = {"costs": f"{folder}/costs/{'-'.join(measured[0])}.json"} if measured else {}
    return {"onnx": onnx, **costs}


def graph_records(columns: dict[str, list[str]]) -> list[str]:
    """Return the record of each of the graphs of `graph_columns`."""
    pairs = zip(columns["model"], columns["graph"], strict=True)
    return [f"reports/{model}/graphs/{graph}.json" for model, graph in pairs]
