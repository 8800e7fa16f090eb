"""Texts in Markdown that are neither a link, a mention, HTML nor a format."""

import re

from tightrope.errors import printable

# what Markdown or HTML would read as a format
MARKS = re.compile(r"([\\`*_\[\]<>|~])")


def code_span(text: str) -> str:
    """Return text as a code span of a table's cell: one line, no backtick, no cell's end."""
    safe = printable(text).replace("`", "'").replace("|", "\\|").strip()
    return f"`{safe}`" if safe else ""


def plain_text(text: str) -> str:
    """Return text in one line, with a backslash before each mark."""
    return MARKS.sub(r"\\\1", printable(text)).strip()
