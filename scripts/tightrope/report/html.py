"""HTML of a page from its content: one file that needs no network."""

import base64
import hashlib
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cache
from inspect import isfunction
from pathlib import Path
from typing import Any

import vl_convert
from jinja2 import DictLoader, Environment, StrictUndefined

from tightrope.artifacts.files import write_bytes
from tightrope.decide.phrases import said, sentence
from tightrope.report import tables
from tightrope.report.style import numbers
from tightrope.report.style.palette import (
    COLOURS,
    METHOD_COLOURS,
    METHOD_SHAPES,
    SHAPES,
    chart_config,
)


class Unknown:
    """Stands in a template where there is no entry: none of its fields is known."""

    def __getattr__(self, name: str) -> None:
        """Return that a field is not known."""

    def __bool__(self) -> bool:
        """Return that it is none."""
        return False


def html_of(
    content: Mapping[str, Any], *, template: Sequence[Path], page: str, style: Path, script: Path
) -> str:
    """Return a page, one of the files of the template, which are included by their names.

    `charts` of the content are specifications by figure id; without any the page has no library
    that draws them.
    """
    scripts = [
        *([chart_library()] if content["charts"] else []),
        inline_script(script.read_text("utf-8")),
    ]
    return (
        environment(tuple(template))
        .get_template(page)
        .render(
            **content,
            chart_data={
                "themes": {scheme: chart_config(scheme) for scheme in ("light", "dark")},
                "specifications": content["charts"],
            },
            colours=COLOURS,
            paths=SHAPES,
            method_colours=METHOD_COLOURS,
            method_paths=METHOD_SHAPES,
            style=style.read_text("utf-8"),
            scripts=scripts,
            script_hashes=[content_hash(text) for text in scripts],
        )
    )


@cache
def environment(parts: tuple[Path, ...]) -> Environment:
    """Return a Jinja environment: autoescape, errors for undefined names.

    Filters are the functions of `numbers`, functions those of `tables`. It is read and compiled
    once per process, for whoever renders many pages.
    """
    jinja = Environment(
        loader=DictLoader({part.name: part.read_text("utf-8") for part in parts}),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    for module, known in ((numbers, jinja.filters), (tables, jinja.globals)):
        own = (one for one in vars(module).values() if isfunction(one))
        known.update({one.__name__: one for one in own if one.__module__ == module.__name__})
    jinja.filters["said"] = said
    jinja.globals |= {"sentence": sentence, "unknown": Unknown()}
    return jinja


@cache
def chart_library() -> str:
    """Return one script with Vega-Embed, Vega-Lite and Vega, kept: it takes 2 s to make."""
    kept = Path(f".snakemake/charts-{vl_convert.__version__}.js")  # type: ignore[attr-defined]
    with suppress(OSError):
        return kept.read_text("utf-8")
    text = inline_script(vl_convert.javascript_bundle())  # type: ignore[call-arg]  # has a default
    if kept.parent.is_dir():
        write_bytes(kept, text.encode())
    return text


def inline_script(text: str) -> str:
    """Escape `text` so that it cannot end its script element; normalize newlines as browsers do."""
    return text.replace("</script", "<\\/script").replace("\r\n", "\n").replace("\r", "\n")


@cache
def content_hash(text: str) -> str:
    """Return the hash that lets the page's security policy run exactly this script."""
    digest = hashlib.sha256(text.encode()).digest()
    return f"sha256-{base64.b64encode(digest).decode()}"
