"""Diagram of a graph: its layers from input to output, as an SVG of any width."""

import textwrap
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterable, Mapping, Sequence
from typing import Any
from xml.etree.ElementTree import Element

from tightrope.report.graphs.chips import HEIGHT, LINE, MARK, PADDING, TIMES, Chip, chips, shortened
from tightrope.report.graphs.style import (
    CHIP_SIZE,
    FACT_SIZE,
    MONO_WIDTH,
    NAME_SIZE,
    SANS_WIDTH,
    class_of,
    css,
)
from tightrope.report.graphs.svg import Box, add, clean, mark, number, rectangle, set_box, text
from tightrope.report.graphs.words import (
    layer_details,
    legend_labels,
    name_lines,
    time_legend,
    value_label,
)

Document = Mapping[str, Any]
WIDE, NARROW = 860, 340
EDGE = 1.0
CARD, GAP, SHEET, BAR = 12.0, 16.0, 4.0, 4.0


def picture(graph: Document, *, width: float = WIDE, label: str, standalone: bool = True) -> str:
    """Return the SVG of a graph from `describe`, `width` units wide; `standalone` embeds its style.

    Text, chips and bars stay within the edges for any names: they wrap or are cut.
    """
    svg = Element("svg", {"xmlns": "http://www.w3.org/2000/svg", "class": "graph", "role": "group"})
    svg.set("aria-label", clean(label))
    if standalone:
        add(svg, "style").text = css()
    y = legend(svg, graph, width)
    y = ends(svg, graph["inputs"], y, width)
    total_s = sum(layer["seconds"] or 0 for block in graph["blocks"] for layer in block["layers"])
    for block in graph["blocks"]:
        y = draw_block(svg, block, flow(svg, y), width, total_s)
    y = ends(svg, graph["outputs"], flow(svg, y), width)
    svg.set("viewBox", f"0 0 {number(width)} {number(y + EDGE)}")
    return ElementTree.tostring(svg, encoding="unicode")


def failure_picture(message: str, *, width: float = WIDE) -> str:
    """Return an SVG that states why there is no diagram."""
    svg = Element("svg", {"xmlns": "http://www.w3.org/2000/svg", "class": "graph", "role": "group"})
    add(svg, "style").text = css()
    lines = textwrap.wrap(message, int(width / (FACT_SIZE * SANS_WIDTH))) or [""]
    for row, line in enumerate(lines, start=1):
        text(svg, line, EDGE, 19 * row, "quiet")
    svg.set("viewBox", f"0 0 {number(width)} {number(19 * len(lines) + 8)}")
    return ElementTree.tostring(svg, encoding="unicode")


def legend(svg: Element, graph: Document, width: float) -> float:
    """Draw formats with operator counts and the meaning of the bars; return the bottom edge."""
    x, y = EDGE, 14.0
    for precision, entry in legend_labels(graph["by_precision"]):
        entry_width = MARK + len(entry) * FACT_SIZE * SANS_WIDTH + 10
        if x > EDGE and x + entry_width > width:
            x, y = EDGE, y + 19
        if precision is not None:
            mark(svg, precision, x + 5, y - 4)
        text(svg, entry, x + (MARK if precision else 0), y, "quiet")
        x += entry_width
    if graph["time"]:
        rectangle(svg, "track", Box(EDGE, y + 13, 22, BAR), BAR / 2)
        rectangle(svg, "share", Box(EDGE, y + 13, 13, BAR), BAR / 2)
        for line in time_legend(graph["time"], int((width - EDGE - 30) / (FACT_SIZE * SANS_WIDTH))):
            y += 19
            text(svg, line, EDGE + 30, y, "quiet")
    return y + 14


def ends(svg: Element, values: Iterable[Document], y: float, width: float) -> float:
    """Draw each input or output as a pill; return the bottom edge."""
    letter, x, top = CHIP_SIZE * MONO_WIDTH, EDGE, y
    for value in values:
        pill = shortened(value_label(value), width - 2 * EDGE - 20, letter)
        pill_width = len(pill) * letter + 20
        if x > EDGE and x + pill_width > width - EDGE:
            x, top = EDGE, top + LINE
        rectangle(svg, "plain", Box(x, top, pill_width, HEIGHT), HEIGHT / 2)
        text(svg, pill, x + 10, top + 14, "end")
        x += pill_width + 8
    return top + HEIGHT


def flow(svg: Element, y: float) -> float:
    """Draw an arrow to the next element; return the top edge of that element."""
    add(svg, "path", {"class": "flow", "d": f"M24 {number(y)}v{GAP - 1}m-4 -4.5l4 4.5l4 -4.5"})
    return y + GAP


def draw_block(svg: Element, block: Document, y: float, width: float, total_s: float) -> float:
    """Draw the layers of a block, stacked sheets behind repeated ones; return the bottom edge."""
    times, layers = block["times"], block["layers"]
    if times == 1:
        return draw_layer(svg, layers[0], EDGE, y, width - 2 * EDGE, total_s=total_s)
    behind = add(svg, "g")
    inner = width - 2 * EDGE - 2 * SHEET
    if len(layers) == 1:
        bottom = draw_layer(svg, layers[0], EDGE, y, inner, total_s=total_s, times=times)
    else:
        bottom = draw_frame(svg, layers, y, inner, total_s=total_s, times=times)
    for step in (2 * SHEET, SHEET):
        rectangle(behind, "card", Box(EDGE + step, y + step, inner, bottom - y), 7)
    return bottom + 2 * SHEET


def draw_frame(
    svg: Element, layers: Sequence[Document], y: float, width: float, *, total_s: float, times: int
) -> float:
    """Draw several layers that repeat together, in a frame; return the bottom edge."""
    frame = add(svg, "rect", {"class": "card"})
    text(svg, f"{times} {TIMES}", EDGE + CARD, y + 21, "name")
    bottom = y + 32 - GAP
    for index, layer in enumerate(layers):
        top = flow(svg, bottom) if index else bottom + GAP
        inner = width - 2 * CARD
        bottom = draw_layer(
            svg, layer, EDGE + CARD, top, inner, total_s=total_s, times=times, framed=True
        )
    set_box(frame, Box(EDGE, y, width, bottom + CARD - y), 7)
    return bottom + CARD


def draw_layer(
    svg: Element,
    layer: Document,
    x: float,
    y: float,
    width: float,
    *,
    total_s: float,
    times: int = 1,
    framed: bool = False,
) -> float:
    """Draw a layer as a card: name, facts, operators and time bar; return the bottom edge."""
    card = add(svg, "rect", {"class": "card"})
    left, room = x + CARD, width - 2 * CARD
    badge = f"{times} {TIMES} " if times > 1 and not framed else ""
    lines = name_lines(layer["names"], badge, int(room / (NAME_SIZE * MONO_WIDTH)))
    details = layer_details(layer, times, total_s)
    for row, line in enumerate(lines):
        text(svg, line, left, y + 20 + 17 * row, "name")
    bottom = y + 20 + 17 * (len(lines) - 1)
    used = len(lines[-1]) * NAME_SIZE * MONO_WIDTH
    if used + 16 + len(details) * FACT_SIZE * SANS_WIDTH <= room:
        text(svg, details, left + room, bottom, "quiet", anchor="end")
    else:
        for line in textwrap.wrap(details, int(room / (FACT_SIZE * SANS_WIDTH))):
            bottom += 17
            text(svg, line, left, bottom, "quiet")
    for chip in chips(layer["operators"], left=left, top=bottom + 9, width=room):
        draw_chip(svg, chip)
        bottom = chip.y - 9
    bottom += 9 + HEIGHT if layer["operators"] else 0
    if layer["seconds"] is not None:
        bottom += 8
        rectangle(svg, "track", Box(left, bottom, room, BAR), BAR / 2)
        share = max(room * layer["seconds"] / total_s, BAR / 2) if total_s else 0
        rectangle(svg, "share", Box(left, bottom, share, BAR), BAR / 2)
        bottom += BAR
    set_box(card, Box(x, y, width, bottom + 10 - y), 7)
    return bottom + 10


def draw_chip(svg: Element, chip: Chip) -> None:
    """Draw an operator run: tinted and marked by format, only outlined if it moves data."""
    group = add(svg, "g", {"class": class_of(chip.precision)})
    add(group, "title").text = clean(chip.title)
    kind = "plain" if chip.moves else "tint"
    rectangle(group, kind, Box(chip.x, chip.y, chip.width, HEIGHT), 4)
    start = chip.x + PADDING
    if not chip.moves:
        mark(group, chip.precision, start + 3.5, chip.y + HEIGHT / 2, with_class=False)
        start += MARK
    classes = "chip move" if chip.moves else "chip heavy" if chip.weighted else "chip"
    text(group, chip.text, start, chip.y + 14, classes)
