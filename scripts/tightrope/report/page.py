"""Render the report: one HTML file that needs no network."""

import base64
import hashlib
import traceback
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import vl_convert
from jinja2 import DictLoader, Environment, StrictUndefined

from tightrope.artifacts.files import write_bytes
from tightrope.errors import ArtifactError, TightropeError, in_one_line
from tightrope.report.context import sections
from tightrope.report.graphs.style import css as graph_style
from tightrope.report.sections.graphs import graphs_section
from tightrope.report.style import numbers
from tightrope.report.style.palette import (
    COLOURS,
    METHOD_COLOURS,
    METHOD_SHAPES,
    SHAPES,
    chart_config,
)
from tightrope.summary.document import read_reported, read_summary

PAGE = "page.html"
FILTERS = (
    "bounded",
    "executed",
    "gain",
    "megabytes",
    "millijoules",
    "milliseconds",
    "moment",
    "mostly_elsewhere",
    "percentage",
    "points",
    "points_interval",
    "points_up",
    "products",
    "ratio",
    "ratio_interval",
    "shape_label",
    "significant",
    "whole",
)


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
    document = read_reported(summary)
    with unshowable(summary):
        html = html_of(
            document,
            environment(tuple(template)),
            graphs=graphs_section(graphs, target),
            style=read(style),
            script=read(script),
        )
    write_bytes(target, html.encode())


def html_of(
    document: Any, jinja: Environment, *, graphs: list[dict[str, Any]], style: str, script: str
) -> str:
    """Return the page on a summary; `graphs` are the result of `graphs_section`."""
    parts = sections(document)
    scripts = [inline_script(chart_library()), inline_script(script)]
    return jinja.get_template(PAGE).render(
        summary=document,
        **parts,
        chart_data={
            "themes": {scheme: chart_config(scheme) for scheme in ("light", "dark")},
            "specifications": parts["charts"],
        },
        colours=COLOURS,
        paths=SHAPES,
        method_colours=METHOD_COLOURS,
        method_paths=METHOD_SHAPES,
        style=style,
        graphs=graphs,
        graph_style=graph_style() if graphs else "",
        scripts=scripts,
        script_hashes=[content_hash(text) for text in scripts],
    )


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


@cache
def environment(template: tuple[Path, ...]) -> Environment:
    """Return a Jinja environment: autoescape, errors for undefined names, number filters.

    It is read and compiled once per process, for whoever renders many pages.
    """
    jinja = Environment(
        loader=DictLoader({part.name: read(part) for part in template}),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    jinja.filters.update({name: getattr(numbers, name) for name in FILTERS})
    return jinja


def chart_library() -> str:
    """Return one script with Vega-Embed, Vega-Lite and Vega."""
    return vl_convert.javascript_bundle()  # type: ignore[call-arg]  # the stub lacks the default


def read(path: Path | str) -> str:
    """Read a part of the page as text."""
    return Path(path).read_text(encoding="utf-8")


def inline_script(text: str) -> str:
    """Escape `text` so that it cannot end its script element; normalize newlines as browsers do."""
    return text.replace("</script", "<\\/script").replace("\r\n", "\n").replace("\r", "\n")


def content_hash(text: str) -> str:
    """Return the hash that lets the page's security policy run exactly this script."""
    digest = hashlib.sha256(text.encode()).digest()
    return f"sha256-{base64.b64encode(digest).decode()}"
