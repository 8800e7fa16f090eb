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
    parts = [one.split(".") for one in (first, last)]
    differ = [at for at, pair in enumerate(zip(*parts, strict=False)) if pair[0] != pair[1]]
    if len(parts[0]) != len(parts[1]) or len(differ) != 1:
        return f"{first} \N{HORIZONTAL ELLIPSIS} {last}"
    (at,) = differ
    middle = f"{parts[0][at]}\N{EN DASH}{parts[1][at]}"
    return ".".join([*parts[0][:at], middle, *parts[0][at + 1 :]])


def name_lines(names: Sequence[str], badge: str, letters: int) -> list[str]:
    """Wrap the badge and name of a layer into lines of at most `letters` characters.

    Lines break before a dot; a part too long for a line is cut in its middle.
    """
    lines = [badge]
    for at, part in enumerate(span(names).split(".")):
        piece = part if at == 0 else f".{part}"
        if len(lines[-1]) + len(piece) > letters and lines[-1].strip():
            lines.append("")
        lines[-1] += shortened(piece, letters - len(lines[-1]), 1)
    return lines


def facts_of(layer: Document, times: int, longest: float) -> str:
    """Return a layer's time share, and its parameters and bytes, per repetition if `times` > 1."""
    words = []
    if layer["seconds"] is not None and longest:
        words.append(f"{significant(100 * layer['seconds'] / longest, 2)} % of the time")
    if layer["parameters"]:
        each = f"{times} {TIMES} " if times > 1 else ""
        words.append(f"{each}{count(layer['parameters'])} parameters")
        words.append(f"{each}{size(layer['weight_bytes'])}")
    return DOT.join(words)


def count(value: int) -> str:
    """Format a number of parameters: 1.77 M, 24.6 k, 770."""
    for unit, word in ((1e9, " G"), (1e6, " M"), (1e4, " k")):
        if value >= unit:
            return f"{significant(value / min(unit, 1e3) if word == ' k' else value / unit)}{word}"
    return whole(value) or "0"


def size(value: int) -> str:
    """Format bytes in MB, small sizes in kB."""
    return f"{megabytes(value)} MB" if value >= 1e5 else f"{significant(value / 1e3)} kB"


def shape_words(one: Document) -> str:
    """Format an input or output with type and shape."""
    sizes = ", ".join("?" if own is None else str(own) for own in one["shape"])
    return f"{one['name']} {one['type']} [{sizes}]"


def legend_words(by_precision: Mapping[str, int]) -> list[tuple[str | None, str]]:
    """Return each format with its operator count, followed by the other signs of a diagram."""
    known = [(name, f"{name} {own:,}") for name, own in by_precision.items() if name != OTHER]
    return [*known, (None, "bold: has weights"), (None, "outlined: only moves or counts numbers")]


def time_words(time: Document, letters: int) -> list[str]:
    """Explain the bars, in lines of at most `letters` characters."""
    shape = ", ".join(f"{name} {own}" for name, own in time["shape"].items())
    method = "share of the time of the operators with weights, each timed alone in ONNX Runtime"
    return textwrap.wrap(f"{method}; {shape}", max(letters, 20))
