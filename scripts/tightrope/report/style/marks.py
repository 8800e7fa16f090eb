"""Marks that a page has in each cell of its tables, which as macros take half of its time."""

from collections.abc import Mapping
from typing import Any

from markupsafe import Markup, escape


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
