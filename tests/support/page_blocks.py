"""Code blocks of a page of the documentation."""

import re
from pathlib import Path

PAGES = Path(__file__).parents[2] / "docs"
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def blocks(page: str, language: str) -> list[str]:
    """The blocks of that language in docs/`page`, in their order."""
    text = (PAGES / page).read_text()
    return [code for name, code in BLOCK.findall(text) if name == language]


def block(page: str, language: str, first_line: str) -> str:
    """The one block of that language whose first line is a comment with these words."""
    (found,) = (one for one in blocks(page, language) if one.startswith(f"# {first_line}\n"))
    return found
