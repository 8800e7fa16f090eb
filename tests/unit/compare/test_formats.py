"""What is in a file cannot control a terminal, a Markdown file or a page."""

import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from planted import changed, compared, wrong
from tightrope.compare import sections

ATTACK = '</code><script>window.owned = true</script><img src=x onerror="owned=1">'
HOSTILE = f"`|x| {ATTACK} [a](javascript:b) @someone #1 \x1b[31m\u202e\n| end ../../etc/passwd"
BOUNDS = (sections.Bound("slower", 0.03), sections.Bound("accuracy", 0.005))


class Tags(HTMLParser):
    """The names of the tags of a page, and their attributes."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: set[str] = set()
        self.feed(html)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes |= {name for name, _ in attributes}


def hostile(document: dict[str, Any]) -> None:
    """Every name and text of the summary is an attack."""
    document["models"] = {HOSTILE: document["models"]["tiny"]}
    document["models"][HOSTILE]["labels"] = [HOSTILE, "b"]
    for result in document["results"]:
        result["model"] = HOSTILE
        if result["variant"] != result["baseline"]:
            result["variant"] += HOSTILE
    for one in document["recommendations"]:
        one["model"] = HOSTILE


@pytest.fixture
def formats(tmp_path: Path, first: dict[str, Any]) -> dict[str, str]:
    """The comparison of hostile summaries in each format."""
    old = changed(first, hostile)

    def other(document: dict[str, Any]) -> None:
        document["overrides"] = [HOSTILE]
        document["recommendations"][0]["variant"] = HOSTILE
        document["results"].pop(0)

    new = changed(old, wrong(8, "openvino-int8"), other)
    for result in new["results"]:
        for flip in result["accuracy"]["flipped"]:
            flip["text"] = HOSTILE
    comparison = compared(tmp_path, old, new)
    found = sections.broken(comparison, BOUNDS)
    assert found
    parts = sections.heading(comparison), sections.sections(comparison, BOUNDS, found)
    return {
        "text": sections.as_text(*parts),
        "markdown": sections.as_markdown(*parts),
        "html": sections.comparison_page(comparison, *parts),
    }


def test_no_name_controls_a_page_a_terminal_or_markdown(formats: dict[str, str]) -> None:
    page = Tags(formats["html"])
    assert "img" not in page.tags
    assert page.tags.count("script") == 2  # the page's own: data, and sorting of tables
    assert not {"onerror", "src"} & page.attributes
    assert "owned = true</script>" not in formats["html"]
    assert not re.search(r"[\x00-\x09\x0b-\x1f\u202e]", formats["text"])
    # in Markdown it is a code span and ends no cell
    text = formats["markdown"]
    outside = re.sub(r"`[^`\n]*`", "", text)
    assert text.count("`") % 2 == 0
    for mark in ("<", "javascript", "@someone", "passwd", "\x1b", "\u202e"):
        assert mark not in outside
    tables = [block.splitlines() for block in text.split("\n\n") if block.startswith("|")]
    assert tables
    for rows in tables:
        assert len({len(re.findall(r"(?<!\\)\|", row)) for row in rows}) == 1


def test_a_name_that_is_a_path_names_no_file(tmp_path: Path, first: dict[str, Any]) -> None:
    def renamed(document: dict[str, Any]) -> None:
        document["results"][0]["model"] = "../x"

    new = changed(first, renamed)
    new["results"][0]["accuracy"]["samples"] += 1
    comparison = compared(tmp_path, changed(first, renamed), new)
    (one,) = [one for one in comparison.accuracy if one.key.model == "../x"]
    assert one.why_totals and one.why_totals.startswith("its name is none of a file")
