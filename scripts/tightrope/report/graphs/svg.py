"""SVG elements of a diagram: texts, rectangles and marks."""

import re
import xml.etree.ElementTree as ElementTree
from collections.abc import Mapping
from typing import NamedTuple
from xml.etree.ElementTree import Element

from tightrope.report.graphs.style import class_of, shape_of_format

# characters that are invalid in XML but may occur in names
FORBIDDEN = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def mark(svg: Element, precision: str, x: float, y: float, *, with_class: bool = True) -> None:
    """Draw the mark of a format, which identifies it without its colour."""
    name = f"mark {class_of(precision)}" if with_class else "mark"
    transform = f"translate({number(x)} {number(y)}) scale(4)"
    add(svg, "path", {"class": name, "d": shape_of_format(precision), "transform": transform})


def text(svg: Element, line: str, x: float, y: float, kind: str, *, anchor: str = "start") -> None:
    """Draw a line of text that starts at `x`, or ends there with `anchor` "end"."""
    attributes = {"class": kind, "x": number(x), "y": number(y)}
    element = add(svg, "text", attributes | ({"text-anchor": anchor} if anchor != "start" else {}))
    element.text = clean(line)


class Box(NamedTuple):
    """Position and size of a rectangle."""

    x: float
    y: float
    width: float
    height: float


def rectangle(svg: Element, kind: str, box: Box, radius: float) -> Element:
    """Draw a rectangle of class `kind` with rounded corners."""
    element = add(svg, "rect", {"class": kind})
    set_box(element, box, radius)
    return element


def set_box(element: Element, box: Box, radius: float) -> None:
    """Set position, size and radius of the corners of a rectangle."""
    for name, size in {**box._asdict(), "rx": radius}.items():
        element.set(name, number(size))


def add(parent: Element, kind: str, attributes: Mapping[str, str] | None = None) -> Element:
    """Add a new element to `parent`."""
    return ElementTree.SubElement(parent, kind, dict(attributes or {}))


def number(value: float) -> str:
    """Format a number with at most two decimals."""
    return f"{value:.2f}".rstrip("0").rstrip(".")


def clean(content: str) -> str:
    """Replace the characters in `content` that are invalid in XML."""
    return FORBIDDEN.sub("\N{REPLACEMENT CHARACTER}", content)
