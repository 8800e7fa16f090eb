"""Pages of the report on the example, rendered with changed fields, as a reader sees them."""

import json
import tempfile
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

from page_parts import PARTS
from tightrope.report.page import render_page

EXAMPLE = Path(__file__).parents[1] / "data/summary.json"
MODEL, HOST = "minilm-docstrings", "5c1f0a77d2e9"
# of an entry on a measurement of that model
MEASURED = {
    **{"model": MODEL, "host": HOST, "status": "ok", "reason": None},
    "measured": "2026-01-01T00:00:00+00:00",
}


class Outline(HTMLParser):
    """The text that a reader sees, the tags, and what the scripts hold."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.html = html
        self.words: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.scripts: list[str] = []
        self.inside: str | None = None
        self.feed(html)
        self.text = " ".join(" ".join(self.words).split())

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attributes)))
        if tag in ("script", "style"):
            self.inside = tag

    def handle_endtag(self, tag: str) -> None:
        self.inside = None if tag == self.inside else self.inside

    def handle_data(self, data: str) -> None:
        if self.inside == "script":
            self.scripts.append(data)
        elif self.inside is None:
            self.words.append(data)

    def section(self, name: str) -> str:
        """The HTML of the section with that id, with single spaces; empty if there is none."""
        begin = self.html.find(f'<section id="{name}">')
        end = self.html.index("</section>", begin) if begin >= 0 else begin
        return " ".join(self.html[begin:end].split())

    def plots(self) -> list[dict[str, str | None]]:
        return [attributes for _, attributes in self.tags if attributes.get("class") == "plot"]


def example(**fields: Any) -> dict[str, Any]:
    """The summary of the example with these fields in place of its own."""
    return {**json.loads(EXAMPLE.read_text()), **fields}


def page(**fields: Any) -> Outline:
    """The page of the example with these fields."""
    return page_of(example(**fields))


def page_of(document: dict[str, Any]) -> Outline:
    """The page of a summary; the same one, which many tests look at, is rendered once."""
    return rendered(json.dumps(document))


@cache
def rendered(text: str) -> Outline:
    with tempfile.TemporaryDirectory() as folder:
        source, target = Path(folder, "summary.json"), Path(folder, "summary.html")
        source.write_text(text)
        render_page(source, target, **PARTS)
        return Outline(target.read_text())
