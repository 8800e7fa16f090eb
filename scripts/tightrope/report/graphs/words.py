"""Text in the diagram of a graph: names of equal layers, sizes, shares, shapes."""

import textwrap
from collections.abc import Mapping, Sequence
from typing import Any

from tightrope.report.graphs.chips import TIMES, shortened
from tightrope.report.graphs.names import OTHER, SHARED
from tightrope.report.style.numbers import megabytes, significant, whole

Document = Mapping[str, Any]
DOT = " \N{MIDDLE DOT} "
SHARED_WORDS = "shared by several layers"


def span(names: Sequence[str]) -> str:
    """Return one name for equal layers: from `layer.0` to `layer.4`, with a dash."""
    first, last = names[0], names[-1]
    if first == SHARED:
        return SHARED_WORDS
    if first == last:
        return first
    parts = [name.split(".") for name in (first, last)]
    differ = [index for index, pair in enumerate(zip(*parts, strict=False)) if pair[0] != pair[1]]
    if len(parts[0]) != len(parts[1]) or len(differ) != 1:
        return f"{first} \N{HORIZONTAL ELLIPSIS} {last}"
    (index,) = differ
    middle = f"{parts[0][index]}\N{EN DASH}{parts[1][index]}"
    return ".".join([*parts[0][:index], middle, *parts[0][index + 1 :]])


def name_lines(names: Sequence[str], badge: str, letters: int) -> list[str]:
    """Wrap the badge and name of a layer into lines of at most `letters` characters.

    Lines break before a dot; a part too long for a line is cut in its middle.
    """
    lines = [badge]
    for index, part in enumerate(span(names).split(".")):
        piece = part if index == 0 else f".{part}"
        if len(lines[-1]) + len(piece) > letters and lines[-1].strip():
            lines.append("")
        lines[-1] += shortened(piece, letters - len(lines[-1]), 1)
    return lines


def layer_details(layer: Document, times: int, total_s: float) -> str:
    """Return a layer's time share, and its parameters and bytes, per repetition if `times` > 1."""
    details = []
    if layer["seconds"] is not None and total_s:
        details.append(f"{significant(100 * layer['seconds'] / total_s, 2)} % of the time")
    if layer["parameters"]:
        prefix = f"{times} {TIMES} " if times > 1 else ""
        details.append(f"{prefix}{count(layer['parameters'])} parameters")
        details.append(f"{prefix}{size(layer['weight_bytes'])}")
    return DOT.join(details)


def count(value: int) -> str:
    """Format a number of parameters: 1.77 M, 24.6 k, 770."""
    for unit, word in ((1e9, " G"), (1e6, " M"), (1e4, " k")):
        if value >= unit:
            return f"{significant(value / min(unit, 1e3) if word == ' k' else value / unit)}{word}"
    return whole(value) or "0"


def size(value: int) -> str:
    """Format bytes in MB, small sizes in kB."""
    return f"{megabytes(value)} MB" if value >= 1e5 else f"{significant(value / 1e3)} kB"


def value_label(value: Document) -> str:
    """Format an input or output with type and shape."""
    sizes = ", ".join("?" if extent is None else str(extent) for extent in value["shape"])
    return f"{value['name']} {value['type']} [{sizes}]"


def legend_labels(by_precision: Mapping[str, int]) -> list[tuple[str | None, str]]:
    """Return each format with its operator count, followed by the other signs of a diagram."""
    formats = [
        (name, f"{name} {operators:,}") for name, operators in by_precision.items() if name != OTHER
    ]
    return [*formats, (None, "bold: has weights"), (None, "outlined: only moves or counts numbers")]


def time_legend(time: Document, letters: int) -> list[str]:
    """Explain the bars, in lines of at most `letters` characters."""
    shape = ", ".join(f"{name} {extent}" for name, extent in time["shape"].items())
    method = "share of the time of the operators with weights, each timed alone in ONNX Runtime"
    return textwrap.wrap(f"{method}; {shape}", max(letters, 20))
