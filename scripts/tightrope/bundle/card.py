"""README.md of a bundle: its model card, and how to use it."""

import platform
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from jinja2 import Environment, StrictUndefined

from tightrope.bundle.requirements import IMPORTED, imported
from tightrope.bundle.subject import Subject
from tightrope.machine.distributions import licence_of
from tightrope.report.style.marks import code_span, plain_text
from tightrope.report.style.numbers import (
    milliseconds,
    moment,
    ratio,
    ratio_interval,
    shape_label,
    shape_of,
)
from tightrope.signature import IMAGE
from tightrope.sources.local import distribution_of

UNAVAILABLE = "unavailable"
FILTERS = {"code": code_span, "milliseconds": milliseconds, "moment": moment, "plain": plain_text}
PACKAGE, DOCSTRINGS, HUB = "package", "docstrings", "hub"


def card(subject: Subject, facts: Mapping[str, Any], template: Path) -> str:
    """Return the text of README.md, from `facts` of bundle.json and the summary."""
    jinja = Environment(undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    jinja.filters.update(FILTERS)
    return jinja.from_string(template.read_text()).render(
        accuracy=subject.result["accuracy"],
        bucketed=bool(subject.engine["options"].get("buckets")),
        checkpoint=subject.checkpoint,
        data=subject.data,
        decisions=decisions(subject),
        facts=facts,
        images=subject.checkpoint["task"] == IMAGE,
        licences=licences(subject),
        model=subject.summary["models"][subject.model],
        python=".".join(platform.python_version_tuple()[:2]),
        result=subject.result,
        speedups=[speedup(subject, one["shape"]) for one in facts["latency"]],
        summary=subject.summary,
        torch="torch" in IMPORTED[subject.variant.engine],
    )


def decisions(subject: Subject) -> list[dict[str, Any]]:
    """Return the recommendation for each shape on the variant's host, and why not others there."""
    return [
        {
            "shape": shape_label(shape_of(one["shape"])),
            "chosen": one["variant"],
            "provisional": one["provisional"],
            "why": one["why"],
            "rejected": [
                other for other in one["rejected"] if not other["reason"].startswith(UNAVAILABLE)
            ],
        }
        for one in subject.summary["recommendations"]
        if (one["model"], one["host"]) == (subject.model, subject.result["host"])
    ]


def speedup(subject: Subject, shape: Mapping[str, int]) -> str:
    """Return the speed-up at a shape with its interval; a dash where there is none."""
    rows = [row for row in subject.result["latency"] if shape_of(row) == shape_of(shape)]
    found = rows[0].get("speedup") if rows else None
    words = [ratio(found), ratio_interval(found)]
    return " ".join(word for word in words if word) or "not known"


def licences(subject: Subject) -> dict[str, Any]:
    """Return the licences of the checkpoint, of the data and of each imported distribution."""
    engine, task = subject.variant.engine, subject.checkpoint["task"]
    return {
        "checkpoint": of_source(subject.checkpoint["source"]),
        "data": of_source(subject.data["source"]),
        "packages": {name: licence_of(name) for name in imported(engine, task)},
    }


def of_source(source: str) -> str:
    """Return the licence of a source of data or of a checkpoint, or who states it."""
    kind, _, rest = source.partition(":")
    if kind == PACKAGE:
        return of_package(rest.partition("/")[0])
    if kind == DOCSTRINGS:
        return "; ".join(f"{name}: {of_package(name)}" for name in rest.split(","))
    if kind == HUB:
        return f"stated on the page of {rest}"
    return f"not stated: {source}"


def of_package(module: str) -> str:
    """Return the licence of the distribution that holds a top-level package."""
    name = distribution_of(module)
    return (licence_of(name) if name else None) or "not stated"
