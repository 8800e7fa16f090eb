"""Render the report, one page."""

import traceback
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tightrope.artifacts.content import made_with_here
from tightrope.artifacts.files import write_bytes
from tightrope.errors import ArtifactError, TightropeError, in_one_line
from tightrope.report.context import sections
from tightrope.report.html import read_template
from tightrope.report.sections.graphs import graphs_section
from tightrope.summary.document import read_reported, read_summary

PAGE = "page.html"


def render_page(
    summary: Path,
    target: Path,
    *,
    template: Sequence[Path],
    style: Path,
    script: Path,
    graphs: Sequence[Path] = (),
) -> None:
    """Write the report on `summary` to `target`, byte-identical for identical inputs.

    `template` holds page.html and the parts that it includes by file name, `graphs` the graph
    records to show. Raises ArtifactError if the summary or a graph record is missing, not JSON, of
    another schema or not of its types.
    """
    document: Any = read_reported(summary)
    known = read_template(template, style, script)
    with unshowable(summary):
        parts = sections(document)
        content = {"summary": document, **parts}
        pictures = graphs_section(graphs, target)
        html = known.html(PAGE, content, charts=parts["charts"], graphs=pictures)
    # the page begins with what it was made with
    write_bytes(target, f"<!-- {made_with_here()} -->\n{html}".encode())


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
