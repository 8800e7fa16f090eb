"""Pages of the report on the example, rendered with changed fields, as a reader sees them."""

import json
import tempfile
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin

import msgspec
from msgspec import structs
from page_parts import PARTS
from tightrope.report.page import render_page
from tightrope.summary.document import Summary

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
        self.parts: dict[str, list[str]] = {}
        self.feed(html)
        self.text = " ".join(" ".join(self.words).split())

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attributes)))
        if tag in ("script", "style"):
            self.inside = tag
        if tag == "section":
            self.parts[dict(attributes)["id"] or ""] = []

    def handle_endtag(self, tag: str) -> None:
        self.inside = None if tag == self.inside else self.inside

    def handle_data(self, data: str) -> None:
        if self.inside == "script":
            self.scripts.append(data)
        elif self.inside is None:
            self.words.append(data)
            for words in [*self.parts.values()][-1:]:
                words.append(data)

    def part(self, name: str | None) -> str:
        """The words of the section with that id, of the page for None, with plain spaces."""
        words = self.words if name is None else self.parts[name]
        return " ".join(" ".join(words).split()).replace("\xa0", " ")

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


def completed(value: Any, kind: Any) -> Any:
    """The value of this type with the fields that it lacks: none where that may be, else empty."""
    parts = get_args(kind)
    if get_origin(kind) in (Union, UnionType):
        fitting = (one for one in parts if is_entry(one) or get_origin(one) is type(value))
        return completed(value, next(fitting, None)) if value is not None else None
    if is_entry(kind):
        fields = structs.fields(kind)
        types = {one.name: one.type for one in fields}
        known = {name: completed(one, types.get(name)) for name, one in value.items()}
        lacking = {one.name: empty(one.type) for one in fields if one.required}
        return {**lacking, **known}
    if isinstance(value, list) and get_origin(kind) is list:
        return [completed(one, parts[0]) for one in value]
    if isinstance(value, dict) and get_origin(kind) is dict:
        return {name: completed(one, parts[1]) for name, one in value.items()}
    return value


def summary_of(document: dict[str, Any]) -> Summary:
    """The summary of a document that may lack fields."""
    return msgspec.convert(completed(msgspec.to_builtins(document), Summary), Summary)


def empty(kind: Any) -> Any:
    """A value of this type that says as little as can be."""
    if is_entry(kind):
        return completed({}, kind)
    if get_origin(kind) is Literal:
        return get_args(kind)[0]
    if get_origin(kind) in (Union, UnionType):
        return None if type(None) in get_args(kind) else empty(get_args(kind)[0])
    return (get_origin(kind) or kind)()


def is_entry(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, msgspec.Struct)


def page_of(document: dict[str, Any]) -> Outline:
    """The page of a summary; the same one, which many tests look at, is rendered once."""
    return rendered(msgspec.json.encode(document))


@cache
def rendered(text: bytes) -> Outline:
    with tempfile.TemporaryDirectory() as folder:
        source, target = Path(folder, "summary.json"), Path(folder, "summary.html")
        source.write_text(json.dumps(completed(json.loads(text), Summary)))
        render_page(source, target, **PARTS)
        return Outline(target.read_text())
