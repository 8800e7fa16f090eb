"""A page of the report in a browser that has no network."""

import shutil

import pytest


@pytest.fixture(scope="module")
def browser():
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    if (chromium := shutil.which("chromium")) is None:
        pytest.skip("no chromium on the PATH")
    with playwright.sync_playwright() as runner:
        made = runner.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        yield made
        made.close()


@pytest.fixture(scope="module")
def open_page(browser):
    """Open a page offline; `page.seen` has each request, console message and error."""
    contexts = []

    def opened(path, width=1400, scheme="light", unfolded=True):
        context = browser.new_context(
            viewport={"width": width, "height": 900}, color_scheme=scheme, offline=True
        )
        contexts.append(context)
        page = context.new_page()
        page.seen = {"requests": [], "messages": []}
        page.on("request", lambda request: page.seen["requests"].append(request.url))
        page.on("console", lambda message: page.seen["messages"].append(message.text))
        page.on("pageerror", lambda error: page.seen["messages"].append(str(error)))
        page.goto(path.as_uri())
        # a locator, because a function that the browser polls is an eval, which the page forbids
        page.locator(f"html[data-charts={scheme}]").wait_for()
        if unfolded:
            page.evaluate(
                "document.querySelectorAll('section > *').forEach((n) => (n.open = true))"
            )
            page.locator(".plot:not(:has(svg))").first.wait_for(state="detached")
        return page

    yield opened
    for context in contexts:
        context.close()
