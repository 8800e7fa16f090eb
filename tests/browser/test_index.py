"""The index of a report of many models, and the way to their pages, without a network."""

import json
from functools import partial
from pathlib import Path

import pytest
from many_models import many_models, pages_of
from page_parts import PARTS
from tightrope.report.page import render_page


@pytest.fixture(scope="module")
def index(tmp_path_factory):
    folder, document = tmp_path_factory.mktemp("index"), many_models(6)
    source, target = folder / "summary.json", folder / "summary.html"
    source.write_text(json.dumps(document))
    render_page(source, target, **PARTS, pages=pages_of(document, folder))
    return target


@pytest.fixture
def visit(open_page, index):
    return partial(open_page, index)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_click_leads_to_the_page_of_a_model_and_another_one_back(visit, scheme):
    page = visit(scheme=scheme)
    page.locator("#deploy").get_by_role("link", name="2-minilm-docstrings").first.click()
    page.locator(f"html[data-charts={scheme}]").wait_for()
    assert page.locator(".plot svg").count() > 4, "its charts are drawn"
    assert page.locator(".decision h2").text_content() == "2-minilm-docstrings"
    page.get_by_role("link", name="All models").click()
    page.locator("h1").wait_for()
    names = ["summary.html", "2-minilm-docstrings.html", "summary.html"]
    assert [Path(request).name for request in page.seen["requests"]] == names
    assert page.seen["messages"] == []


@pytest.mark.parametrize("width", [320, 400, 800, 1400])
def test_the_index_never_scrolls_sideways(visit, width):
    page = visit(width)
    assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_the_decisions_are_sorted_by_a_click(visit):
    page = visit()
    table = page.get_by_role("region", name="What to deploy")
    table.get_by_role("button", name="Speed-up").click()
    ratios = table.locator("tbody tr td:nth-child(5)").evaluate_all(
        "cells => cells.map((cell) => Number(cell.dataset.value))"
    )
    assert len(ratios) == 36
    assert ratios == sorted(ratios, reverse=True)
    first = table.locator("tbody th").first.text_content()
    assert first == "0-minilm-docstrings"
