"""What is in a file cannot control a terminal, a Markdown file or a page."""

import json
import re
from html import unescape
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import altair as alt
import pytest
import vl_convert
from planted import changed, compared, written, wrong
from tightrope.compare.answers import from_records
from tightrope.compare.bounds import Bound, broken
from tightrope.compare.formats import as_markdown, as_text
from tightrope.compare.history import all_series
from tightrope.compare.page import comparison_page
from tightrope.compare.read import Key, read_report
from tightrope.compare.sections import heading, sections
from tightrope.compare.trend import chart, trend_page
from tightrope.report.style.palette import INKS, chart_config

ATTACK = '</code><script>window.owned = true</script><img src=x onerror="owned=1">'
HOSTILE = f"`|x| {ATTACK} [a](javascript:b) @someone #1 \x1b[31m\u202e\n| end ../../etc/passwd"
BOUNDS = (Bound("slower", 0.03), Bound("accuracy", 0.005))


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
    found = broken(comparison, BOUNDS)
    assert found
    parts = heading(comparison), sections(comparison, BOUNDS, found)
    return {
        "text": as_text(*parts),
        "markdown": as_markdown(*parts),
        "html": comparison_page(comparison, *parts),
    }


def test_a_page_has_no_tag_of_a_name(formats: dict[str, str]) -> None:
    plain = Tags(formats["html"])
    assert "img" not in plain.tags
    assert plain.tags.count("script") == 2  # the page's own: data, and sorting of tables
    assert not {"onerror", "src"} & plain.attributes
    assert "owned = true</script>" not in formats["html"]


def test_a_terminal_gets_no_control_character(formats: dict[str, str]) -> None:
    assert not re.search(r"[\x00-\x09\x0b-\x1f\u202e]", formats["text"])


def test_in_markdown_a_name_is_a_code_span_and_ends_no_cell(formats: dict[str, str]) -> None:
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

    comparison = compared(tmp_path, changed(first, renamed), changed(first, renamed))
    key = Key("../x", first["results"][0]["variant"])
    assert from_records(comparison.old, comparison.new, key) == "its name is none of a file"


def test_a_trend_page_has_no_tag_of_a_name(tmp_path: Path, first: dict[str, Any]) -> None:
    def renamed(document: dict[str, Any]) -> None:
        hostile(document)
        for one in document["recommendations"]:
            one["variant"] += HOSTILE

    report = read_report(written(tmp_path, changed(first, renamed)))
    page = trend_page(tmp_path, [report], all_series([report]))
    read = Tags(page)
    assert HOSTILE[:8] in unescape(page) and "vegaEmbed" in page
    assert "img" not in read.tags and not {"onerror", "src"} & read.attributes
    assert read.tags.count("script") == 3  # the page's own: data, Vega, and what draws


def test_a_chart_of_a_trend_is_one_of_vega_lite(first: dict[str, Any], tmp_path: Path) -> None:
    report = read_report(written(tmp_path, first))
    found = all_series([report])
    specification = chart(found)
    specification.pop("usermeta", None)
    alt.LayerChart.from_dict(specification)
    assert {row["variant"] for row in specification["data"]["values"]} == {
        one.row.variant for one in found
    }


@pytest.mark.parametrize("scheme", INKS)
def test_the_words_of_a_trend_have_the_ink_of_the_page_and_are_whole(
    scheme: str, first: dict[str, Any], tmp_path: Path
) -> None:
    found = all_series([read_report(written(tmp_path, first))])
    fixed = json.dumps({**chart(found), "width": 400})
    drawn = ElementTree.fromstring(vl_convert.vegalite_to_svg(fixed, config=chart_config(scheme)))
    texts = [one for one in drawn.iter() if one.tag.endswith("}text")]
    assert {one.row.variant for one in found} <= {one.text for one in texts}
    assert {one.get("fill") for one in texts} == {INKS[scheme]["quiet"]}
