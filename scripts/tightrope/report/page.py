"""Render the report: one page, or of many results an index and a page for each model."""

import os
import traceback
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

from tightrope.artifacts.content import made_with_here
from tightrope.artifacts.files import write_bytes
from tightrope.errors import ArtifactError, TightropeError, in_one_line
from tightrope.report.context import sections
from tightrope.report.html import Template, read_template
from tightrope.report.index import index_content, model_row
from tightrope.report.models import COMPARISONS, summaries_of_models
from tightrope.report.sections.graphs import graphs_section
from tightrope.summary.document import Summary, read_reported, read_summary

PAGE, INDEX = "page.html", "index.html"
# the folder of the pages of models, beside the index
PAGES = "pages"


def render_page(
    summary: Path,
    target: Path,
    *,
    template: Sequence[Path],
    style: Path,
    script: Path,
    graphs: Sequence[Path] = (),
    pages: Sequence[Path] = (),
) -> None:
    """Write the report on `summary` to `target`, byte-identical for identical inputs.

    `template` holds page.html and the parts that it includes by file name, `graphs` the graph
    records to show. With `pages`, files named after the models, each model is shown on its own one
    and `target` is the index; pages of other models in PAGES are deleted. Raises ArtifactError if
    the summary or a graph record is missing, not JSON, of another schema or not of its types.
    """
    document: Any = read_reported(summary)
    known = read_template(template, style, script)
    with unshowable(summary):
        if pages:
            html = render_models(document, known, target, graphs, pages)
        else:
            html = page_of(document, sections(document), known, graphs_section(graphs, target))
    write_page(target, html)
    for page in set(target.parent.joinpath(PAGES).glob("*.html")) - set(pages):
        page.unlink()


def write_page(page: Path, html: str) -> None:
    """Write a page, which begins with what it was made with."""
    write_bytes(page, f"<!-- {made_with_here()} -->\n{html}".encode())


def page_of(
    document: Summary,
    parts: dict[str, Any],
    template: Template,
    graphs: list[dict[str, Any]],
    index: dict[str, str] | None = None,
) -> str:
    """Return the page on a summary.

    `parts` are its sections, `index` are links to the index by their texts.
    """
    content = {"summary": document, "index": index, **parts}
    return template.html(PAGE, content, charts=parts["charts"], graphs=graphs)


def render_models(
    document: Summary,
    template: Template,
    target: Path,
    graphs: Sequence[Path],
    pages: Sequence[Path],
) -> str:
    """Write the page of each model that has one, one after the other; return the index."""
    places, drawn = {page.stem: page for page in pages}, graphs_by_model(graphs)
    rows = []
    for name, own in summaries_of_models(document):
        parts, page, link = sections(own), places.get(name), None
        if page:
            link = quote(os.path.relpath(page, target.parent))
            index = links_to(document, quote(os.path.relpath(target, page.parent)))
            pictures = graphs_section(drawn.get(name, ()), page)
            write_page(page, page_of(own, parts, template, pictures, index))
        rows.append(model_row(parts, link))
    content = index_content(document, rows)
    return template.html(INDEX, content, charts=content["charts"], library=bool(content["charts"]))


def graphs_by_model(records: Iterable[Path]) -> dict[str, list[Path]]:
    """Return the graph records `{model}/graphs/{graph}.json` of each model."""
    found: dict[str, list[Path]] = {}
    for record in records:
        found.setdefault(record.parent.parent.name, []).append(record)
    return found


def links_to(document: Summary, index: str) -> dict[str, str]:
    """Return the links from a model's page to the index by their texts."""
    shown = [section for key, section in COMPARISONS.items() if document.get(key)]
    return {"All models": index} | {title: f"{index}#{anchor}" for anchor, title in shown}


@contextmanager
def unshowable(summary: Path) -> Iterator[None]:
    """Turn what a summary raises that is not whole into an ArtifactError; its trace is printed."""
    try:
        yield
    except TightropeError:
        raise
    except Exception as error:
        read_summary(summary)  # names the field
        traceback.print_exc()
        raise ArtifactError(
            f"{summary}: cannot be shown ({in_one_line(error)}); delete it and run again"
        ) from error
