"""A comparison as a page in the style of the report."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from tightrope import report
from tightrope.compare.compare import Comparison
from tightrope.compare.text import Quoted, Section, Words
from tightrope.report.html import Template, read_template

HERE = Path(__file__).parent / "template"
REPORT = Path(report.__path__[0]) / "template"
PARTS = (*sorted(HERE.glob("*.html")), REPORT / "shell.html", REPORT / "macros.html")


def template() -> Template:
    """Return the template of the pages of this package, in the report's own frame and style."""
    return read_template(PARTS, REPORT / "page.css", REPORT / "page.js")


def comparison_page(
    comparison: Comparison, heading: Iterable[Words], sections: Sequence[Section]
) -> str:
    """Return the page of a comparison."""
    return page_of("comparison.html", comparison.new.document, heading, sections)


def page_of(
    name: str,
    document: Mapping[str, Any],
    heading: Iterable[Words],
    sections: Sequence[Section],
    charts: Mapping[str, Any] | None = None,
) -> str:
    """Return a page of this package; `document` is a summary for its frame."""
    content: dict[str, Any] = {"summary": document, "is_quoted": is_quoted}
    content |= {"heading": list(heading), "sections": list(sections)}
    return template().html(name, content, charts=charts or {}, library=bool(charts))


def is_quoted(part: Any) -> bool:
    """Return whether a part of a line is what a file says."""
    return isinstance(part, Quoted)
