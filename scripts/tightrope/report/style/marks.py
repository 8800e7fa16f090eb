"""Marks of values in cells of tables.

In HTML they are functions, since macros take half of the time of a page. In Markdown a text can be
neither a link, a mention, HTML nor a format.
"""

import re
from collections.abc import Mapping
from typing import Any

from markupsafe import Markup, escape

from tightrope.errors import printable

# what Markdown or HTML would read as a format
MARKS = re.compile(r"([\\`*_\[\]<>|~])")


def missing(reason: Any) -> Markup:
    """Return a dash with the reason why there is no value."""
    text = escape(reason)
    unseen = f'<span class="unseen"> {text}</span>'
    return Markup(f'<span class="none" title="{text}">\N{EN DASH}{unseen}</span>')


def value(text: Any, reason: Any = "not recorded") -> Markup:
    """Return a value, a dash with the reason if it is None."""
    return missing(reason) if text is None else escape(text)


def verdict(word: Any) -> Markup:
    """Return a verdict in its style, nothing without one."""
    if not word:
        return Markup()
    text = escape(word)
    return Markup(f'<span class="verdict {text}">{text}</span>')


def provisional(row: Mapping[str, Any]) -> Markup:
    """Return the mark of a row with numbers from disturbed times."""
    return Markup(f" {verdict('provisional')}") if row.get("provisional") else Markup()


def name(variant: Any) -> Markup:
    """Return the name of a variant."""
    return Markup(f'<code class="variant">{escape(variant)}</code>')


def number_cell(text: Any, raw: Any, reason: Any = "not recorded") -> Markup:
    """Return the cell of a number; the table is sorted by its `raw` value."""
    key = "" if raw is None else escape(raw)
    return Markup(f'<td class="number" data-value="{key}">{value(text, reason)}</td>')


def answer(text: Any, right: Any) -> Markup:
    """Return an answer in the style of a right or of a wrong one."""
    if not right:
        return Markup(f'<span class="verdict wrong">{escape(text)}</span>')
    unseen = '<span class="unseen">\n  (right)</span>'
    return Markup(f'<span class="verdict right">{escape(text)}{unseen}</span>')


def code_span(text: str) -> str:
    """Return text as a code span of a table's cell: one line, no backtick, no cell's end."""
    safe = printable(text).replace("`", "'").replace("|", "\\|").strip()
    return f"`{safe}`" if safe else ""


def plain_text(text: str) -> str:
    """Return text in one line, with a backslash before each mark."""
    return MARKS.sub(r"\\\1", printable(text)).strip()
