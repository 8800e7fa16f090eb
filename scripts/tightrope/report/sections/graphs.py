"""Report section on the ONNX files: the layers of each, and the file for Netron."""

import os
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

from tightrope.artifacts.content import read_artifact
from tightrope.artifacts.failures import failure_of
from tightrope.artifacts.files import require_type
from tightrope.report.graphs.record import OTHER, SHARED, GraphRecord
from tightrope.report.style.numbers import megabytes, significant, whole
from tightrope.runtimes.executed import is_product

Record = Mapping[str, Any]
DOT = " \N{MIDDLE DOT} "


def graphs_section(paths: Iterable[Path], page: Path) -> list[dict[str, Any]]:
    """Return the graphs of these records by model, with links relative to `page`.

    A record is at `{model}/graphs/{graph}.json`, with the file for Netron in the same folder. A
    graph that was not read has only a `reason`. Raises ArtifactError for a record that is not
    JSON or not of its type.
    """
    models: dict[str, list[dict[str, Any]]] = {}
    for path in paths:
        document = read_artifact(path, dict[str, Any])
        entry = {"name": path.stem, "reason": (failure_of(document) or {}).get("reason")}
        if entry["reason"] is None:
            link = os.path.relpath(path.with_suffix(".onnx"), page.parent)
            require_type(path, document, GraphRecord)
            entry |= graph_content(document) | {"link": quote(link)}
        models.setdefault(path.parent.parent.name, []).append(entry)
    return [{"name": name, "graphs": graphs} for name, graphs in models.items()]


def graph_content(document: Record) -> dict[str, Any]:
    """Return the facts of a graph in words, and a row for each layer."""
    formats = [name for name in document["by_precision"] if name != OTHER]
    properties = [
        f"{whole(document['operators'])} operators",
        f"{count(document['parameters'])} parameters",
        size(document["weight_bytes"]),
        ", ".join(f"{name} {whole(document['by_precision'][name])}" for name in formats),
    ]
    layers = [(block["times"], layer) for block in document["blocks"] for layer in block["layers"]]
    shape = document["time"]["shape"] if document["time"] else {}
    total_s = sum(layer["seconds"] or 0 for _, layer in layers)
    most_first = sorted(document["by_type"].items(), key=lambda pair: (-pair[1], pair[0]))
    return {
        "facts": DOT.join(filter(None, properties)),
        "kinds": ", ".join(f"{kind} {whole(number)}" for kind, number in most_first),
        "timed_at": ", ".join(f"{name} {extent}" for name, extent in shape.items()),
        "layers": [layer_row(times, layer, total_s) for times, layer in layers],
        "ends": [value_label(one) for one in (*document["inputs"], *document["outputs"])],
    }


def layer_row(times: int, layer: Record, total_s: float) -> dict[str, Any]:
    """Return the cells of a layer; `times` is how often it is repeated."""
    operators = [(one["type"], one["precision"], one["count"]) for one in layer["operators"]]
    products = [precision for kind, precision, _ in operators if is_product(kind)]
    others = [precision for _, precision, _ in operators if precision != OTHER]
    counts: Counter[str] = Counter()
    for kind, _, number in operators:
        counts[kind] += number
    by_type = [f"{kind} {one}" if one > 1 else kind for kind, one in counts.most_common()]
    return {
        "name": span(layer["names"]),
        "times": times,
        "formats": ", ".join(dict.fromkeys(products or others)),
        "operators": ", ".join(by_type),
        "parameters": count(layer["parameters"]) if layer["parameters"] else None,
        "bytes": size(layer["weight_bytes"]) if layer["parameters"] else None,
        "share": layer["seconds"] / total_s if layer["seconds"] is not None and total_s else None,
    }


def span(names: Sequence[str]) -> str:
    """Return one name for equal layers: from `layer.0` to `layer.4`, with a dash."""
    first, last = names[0], names[-1]
    if first == SHARED:
        return "shared by several layers"
    if first == last:
        return first
    parts = [name.split(".") for name in (first, last)]
    differ = [index for index, pair in enumerate(zip(*parts, strict=False)) if pair[0] != pair[1]]
    if len(parts[0]) != len(parts[1]) or len(differ) != 1:
        return f"{first} \N{HORIZONTAL ELLIPSIS} {last}"
    (index,) = differ
    middle = f"{parts[0][index]}\N{EN DASH}{parts[1][index]}"
    return ".".join([*parts[0][:index], middle, *parts[0][index + 1 :]])


def count(value: int) -> str:
    """Format a number of parameters: 1.77 M, 24.6 k, 770."""
    for least, unit, word in ((1e9, 1e9, "G"), (1e6, 1e6, "M"), (1e4, 1e3, "k")):
        if value >= least:
            return f"{significant(value / unit)} {word}"
    return whole(value) or "0"


def size(value: int) -> str:
    """Format bytes in MB, small sizes in kB."""
    return f"{megabytes(value)} MB" if value >= 1e5 else f"{significant(value / 1e3)} kB"


def value_label(value: Record) -> str:
    """Format an input or output with type and shape."""
    sizes = ", ".join("?" if extent is None else str(extent) for extent in value["shape"])
    return f"{value['name']} {value['type']} [{sizes}]"
