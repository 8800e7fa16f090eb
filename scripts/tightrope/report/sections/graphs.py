"""Report section on the ONNX files: a diagram of each, and the file for Netron."""

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote

from markupsafe import Markup

from tightrope.artifacts.content import read_artifact
from tightrope.artifacts.failures import failure_of
from tightrope.artifacts.files import require_type
from tightrope.report.graphs.names import OTHER
from tightrope.report.graphs.picture import NARROW, WIDE, picture
from tightrope.report.graphs.record import GraphRecord
from tightrope.report.graphs.words import DOT, count, size
from tightrope.report.style.numbers import whole

Record = Mapping[str, Any]


def graphs_section(paths: Iterable[Path], page: Path) -> list[dict[str, Any]]:
    """Return the graphs of these records by model, with links relative to `page`.

    A record is at `{model}/graphs/{graph}.json`, with the file for Netron in the same folder. A
    graph that was not drawn has only a `reason`. Raises ArtifactError for a record that is not
    JSON or not of its type.
    """
    models: dict[str, list[dict[str, Any]]] = {}
    for path in paths:
        model = path.parent.parent.name
        document = read_artifact(path, dict[str, Any])
        entry = {
            "name": path.stem,
            "model": model,
            "reason": (failure_of(document) or {}).get("reason"),
        }
        if entry["reason"] is None:
            link = os.path.relpath(path.with_suffix(".onnx"), page.parent)
            require_type(path, document, GraphRecord)
            entry |= graph_content(document, f"{model} {path.stem}") | {"link": quote(link)}
        models.setdefault(model, []).append(entry)
    return [{"name": name, "graphs": graphs} for name, graphs in models.items()]


def graph_content(document: Record, title: str) -> dict[str, Any]:
    """Return the facts of a graph in words, and its diagrams for wide and narrow pages."""
    formats = [name for name in document["by_precision"] if name != OTHER]
    properties = [
        f"{whole(document['operators'])} operators",
        f"{count(document['parameters'])} parameters",
        size(document["weight_bytes"]),
        ", ".join(f"{name} {whole(document['by_precision'][name])}" for name in formats),
    ]
    pictures = {
        name: Markup(picture(document, width=width, label=title, standalone=False))
        for name, width in (("wide", WIDE), ("narrow", NARROW))
    }
    most_first = sorted(document["by_type"].items(), key=lambda pair: (-pair[1], pair[0]))
    kinds = [f"{kind} {whole(number)}" for kind, number in most_first]
    return {"facts": DOT.join(filter(None, properties)), "kinds": ", ".join(kinds), **pictures}
