"""The index of a report of many models, and the way to their pages, without a network."""

import json
import shutil
from pathlib import Path

import pytest
from many_models import many_models, pages_of
from page_parts import PARTS
from tightrope.report.page import render_page

playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
CHROMIUM = shutil.which("chromium")
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no chromium on the PATH")


@pytest.fixture(scope="module")
def index(tmp_path_factory):
    folder, document = tmp_path_factory.mktemp("index"), many_models(6)
    source, target = folder / "summary.json", folder / "summary.html"
    source.write_text(json.dumps(document))
    render_page(source, target, **PARTS, pages=pages_of(document, folder))
    return target


@pytest.fixture(scope="module")
def browser():
    with playwright.sync_playwright() as runner:
        made = runner.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield made
        made.close()


@pytest.fixture
def visit(browser, index):
    """Open the index offline; `page.seen` has each request, console message and error."""
    contexts = []

    def opened(width=1400, scheme="light"):
        context = browser.new_context(
            viewport={"width": width, "height": 900}, color_scheme=scheme, offline=True
        )
        contexts.append(context)
        page = context.new_page()
        page.seen = {"requests": [], "messages": []}
        page.on("request", lambda request: page.seen["requests"].append(Path(request.url).name))
        page.on("console", lambda message: page.seen["messages"].append(message.text))
        page.on("pageerror", lambda error: page.seen["messages"].append(str(error)))
        page.goto(index.as_uri())
        page.locator(f"html[data-charts={scheme}]").wait_for()
        return page

    yield opened
    for context in contexts:
        context.close()


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
    assert page.seen == {"requests": names, "messages": []}


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
