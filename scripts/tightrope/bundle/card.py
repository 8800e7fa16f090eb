"""README.md of a bundle: its model card, and how to use it."""

import platform
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from jinja2 import Environment, StrictUndefined

from tightrope.bundle.licences import licences
from tightrope.bundle.requirements import IMPORTED
from tightrope.bundle.subject import Subject
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

UNAVAILABLE = "unavailable"
FILTERS = {
    "code": code_span,
    "milliseconds": milliseconds,
    "moment": moment,
    "plain": plain_text,
}


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
    """Return the recommendation for each shape on the host of the variant, and why not others.

    Variants that cannot run there are left out.
    """
    return [
        {
            "shape": shape_label(shape_of(one["shape"])),
            "chosen": one["variant"],
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
