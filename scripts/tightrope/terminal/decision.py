"""The deployment decision of a report as a table on the terminal."""

import sys
from pathlib import Path
from shutil import get_terminal_size
from typing import Any

from tightrope.artifacts.files import file_state
from tightrope.decide.phrases import sentence, why
from tightrope.decide.recommend import Recommendation
from tightrope.decide.result import LatencyRow, Shape
from tightrope.report.style.numbers import TIMES, milliseconds, points, ratio, ratio_interval
from tightrope.summary.document import (
    Summary,
    disturbed,
    failures,
    read_reported,
    remeasure_command,
)
from tightrope.summary.models import poor_baseline, truncation_words

# alignment of each column, and its width on a narrow terminal: there names do not wrap, so that
# they can be copied
COLUMNS = {
    "shape": ("left", None),
    "variant": ("left", None),
    "ms": ("right", None),
    "speed-up": ("left", 12),
    "accuracy": ("left", 8),
    "verdict": ("left", 11),
}


def closing_words(
    report: Path | str, summary: Path | str, *, before: tuple[int, int] | None
) -> str:
    """Return the closing text of a run, empty if the report is as `before`, see `file_state`."""
    if file_state(report) in (None, before):
        return ""
    document = read_reported(summary)
    width = get_terminal_size().columns if sys.stdout.isatty() else None
    lines = [decision_table(document, width=width), *decided(document)]
    for name, model in document.models.items():
        if words := truncation_words(model.truncation):
            lines.append(f"{name}: {words}")
    lines.append(f"Report: {report}")
    if failed := failures(document):
        lines.append(f"{len(failed)} failed, the report says why: {', '.join(failed)}")
    for name, model in document.models.items():
        own = [one for one in document.results if one.model == name]
        if remark := poor_baseline(model, own):
            lines.append(f"{name}: {remark}")
    if count := sum(map(len, disturbed(document).values())):
        subject = "1 measurement was" if count == 1 else f"{count} measurements were"
        provisional = any(one.provisional for one in document.recommendations)
        so = ": the decision is provisional" if provisional else ""
        lines.append(f"{subject} disturbed by other load{so}.")
        again = remeasure_command(document)
        lines.append(f"To measure only these again, on a quiet machine: {again}")
    return "".join(f"{line}\n" for line in lines if line)


def decision_table(document: Summary, *, width: int | None = None) -> str:
    """Return a table per model and host, a row per shape; cells wrap where it is too wide."""
    from tabulate import tabulate

    hosts = {one.host for one in document.recommendations}
    groups: dict[str, list[list[str]]] = {}
    for one in document.recommendations:
        title = one.model if len(hosts) < 2 else f"{one.model} on host {one.host}"
        groups.setdefault(title, []).append(cells(document, one))
    alignment, widths = zip(*COLUMNS.values(), strict=True)
    options: dict[str, Any] = {"tablefmt": "plain", "disable_numparse": True, "colalign": alignment}
    tables = []
    for title, rows in groups.items():
        table = tabulate([[*COLUMNS], *rows], **options)
        if width is not None and max(len(line.rstrip()) for line in table.splitlines()) > width:
            table = tabulate([[*COLUMNS], *rows], **options, maxcolwidths=[*widths])
        tables.append(f"{title}\n" * (len(groups) > 1) + table)
    return "\n\n".join(tables)


def cells(document: Summary, recommendation: Recommendation) -> list[str]:
    """Return the cells of one recommendation."""
    shape, variant = size_label(recommendation.shape), recommendation.variant
    if variant is None:
        return [shape, "none", "", "", "", "not decided"]
    place = (recommendation.model, recommendation.host, variant)
    result = next(one for one in document.results if (one.model, one.host, one.variant) == place)
    row = result.at(recommendation.shape) or LatencyRow(recommendation.shape)
    speedup, accuracy = row.speedup, result.accuracy
    interval = ratio_interval(speedup)
    is_baseline = result.baseline == variant
    words: list[str] = ["baseline"] if is_baseline else [speedup.verdict] if speedup else []
    if equal := len(recommendation.equal):
        words.append(f"equal to {equal} other" + "s" * (equal > 1))
    if recommendation.provisional:
        words.append("provisional")
    changed = points(accuracy.delta, accuracy.samples) if accuracy else None
    return [
        shape,
        variant,
        milliseconds(row.paired_s) or "",
        (ratio(speedup) or "") + (f" ({interval})" if interval else ""),
        "no labels" if accuracy is None else "" if changed is None else f"{changed} points",
        ", ".join(words),
    ]


def size_label(shape: Shape) -> str:
    """Format a shape as sizes joined by the times sign; padded texts as `32x128, 64 tokens`."""
    sizes = shape.sizes
    tokens = sizes.pop("tokens", None)
    joined = TIMES.join(map(str, sizes.values()))
    return joined if tokens is None else f"{joined}, {tokens} tokens"


def decided(document: Summary) -> list[str]:
    """Return what the table lacks of the decision: the goal, why there is none, what may be better.

    A goal without a variant at a shape is told as why there is no recommendation for it.
    """
    lines = [
        f"{one.model}: {sentence(document.goal, one)}" + " (provisional)" * one.provisional
        for one in document.goals
        if document.goal and (one.variant is not None or one.shape is None)
    ]
    lines += [
        f"{one.model}, {size_label(one.shape)}: {why(one, document.goal, document.goals)}"
        for one in document.recommendations
        if one.variant is None
    ]
    needed = {
        (one.model, one.variant): one.accuracy.samples_needed
        for one in document.results
        if one.accuracy
    }
    open_ones = [(one.model, name) for one in document.recommendations for name in one.undecided]
    return lines + [
        f"{key[0]}: {key[1]} may be better: it takes about {needed[key]:,} evaluation examples to "
        "show that it keeps the accuracy"
        for key in dict.fromkeys(open_ones)
        if needed.get(key)
    ]
