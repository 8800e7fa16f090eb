"""The deployment decision of a report as a table on the terminal."""

import sys
from pathlib import Path
from shutil import get_terminal_size
from typing import Any

from tightrope.artifacts.files import file_state, read_json
from tightrope.report.style.numbers import (
    TIMES,
    milliseconds,
    points,
    ratio,
    ratio_interval,
    shape_of,
)
from tightrope.summary.accuracy import poor_baseline, truncation_words
from tightrope.summary.document import remeasure_command
from tightrope.summary.failures import failures

COLUMNS = ("shape", "variant", "ms", "speed-up", "accuracy", "verdict")
ALIGNMENT = ("left", "left", "right", "left", "left", "left")
# column widths on a narrow terminal; names do not wrap, so that they can be copied
NARROW = {"speed-up": 12, "accuracy": 8, "verdict": 11}
Entry = dict[str, Any]


def closing_words(
    report: Path | str, summary: Path | str, *, before: tuple[int, int] | None
) -> str:
    """Return the closing text of a run, empty if the report is as `before`, see `file_state`."""
    if file_state(report) in (None, before):
        return ""
    document = read_json(summary, dict[str, Any])
    width = get_terminal_size().columns if sys.stdout.isatty() else None
    lines = [decision_table(document, width=width), *goals(document), *undecided(document)]
    lines += [*may_be_better(document), *cut_texts(document)]
    lines.append(f"Report: {report}")
    if failed := [f"{one['model']}/{one['variant']}" for one in failures(Path(summary))]:
        lines.append(f"{len(failed)} failed, the report says why: {', '.join(failed)}")
    lines += poor_baselines(document)
    if count := len(disturbed(document)):
        subject = "1 measurement was" if count == 1 else f"{count} measurements were"
        so = ": the decision is provisional" if is_provisional(document) else ""
        lines.append(f"{subject} disturbed by other load{so}.")
        again = remeasure_command(document)
        lines.append(f"To measure only these again, on a quiet machine: {again}")
    return "".join(f"{line}\n" for line in lines if line)


def decision_table(document: Entry, *, width: int | None = None) -> str:
    """Return a table per model and host with a row per shape; empty without recommendations.

    If it would be wider than `width`, the cells of NARROW wrap.
    """
    groups: dict[str, list[Entry]] = {}
    hosts = {one.get("host") for one in document["recommendations"]}
    for one in document["recommendations"]:
        title = one["model"] if len(hosts) < 2 else f"{one['model']} on host {one['host']}"
        groups.setdefault(title, []).append(one)
    tables = [
        f"{title}\n" * (len(groups) > 1) + table_of([cells(document, one) for one in group], width)
        for title, group in groups.items()
    ]
    return "\n\n".join(tables)


def table_of(rows: list[list[str]], width: int | None) -> str:
    """Format the rows as an aligned table with a header."""
    from tabulate import tabulate

    def table(widths: list[int | None] | None) -> str:
        return tabulate(
            [COLUMNS, *rows],
            tablefmt="plain",
            disable_numparse=True,
            colalign=ALIGNMENT,
            maxcolwidths=widths,
        )

    whole = table(None)
    if width is None or width_of(whole) <= width:
        return whole
    return table([NARROW.get(name) for name in COLUMNS])


def width_of(text: str) -> int:
    """Return the length of the longest line."""
    return max(len(line.rstrip()) for line in text.splitlines())


def cells(document: Entry, recommendation: Entry) -> list[str]:
    """Return the cells of one recommendation."""
    shape = size_label(recommendation["shape"])
    if recommendation["variant"] is None:
        return [shape, "none", "", "", "", "not decided"]
    result, row = measured(document, recommendation)
    speedup = row.get("speedup")
    seconds = row.get("paired_s")
    return [
        shape,
        recommendation["variant"],
        milliseconds(seconds) or "",
        speedup_label(speedup),
        accuracy_label(result.get("accuracy")),
        verdict(recommendation, result, speedup),
    ]


def measured(document: Entry, recommendation: Entry) -> tuple[Entry, Entry]:
    """Return the recommended variant's result and its row at that shape; empty if missing."""
    wanted = [recommendation.get(name) for name in ("model", "host", "variant")]
    for result in document["results"]:
        if [result.get(name) for name in ("model", "host", "variant")] == wanted:
            for row in result.get("latency", ()):
                if shape_of(row) == shape_of(recommendation["shape"]):
                    return result, row
            return result, {}
    return {}, {}


def size_label(shape: dict[str, int]) -> str:
    """Format a shape as sizes joined by the times sign; padded texts as `32x128, 64 tokens`."""
    sizes = dict(shape_of(shape))
    tokens = sizes.pop("tokens", None)
    joined = TIMES.join(map(str, sizes.values()))
    return joined if tokens is None else f"{joined}, {tokens} tokens"


def speedup_label(speedup: Entry | None) -> str:
    """Format a speed-up with its interval, empty without one."""
    number, interval = ratio(speedup), ratio_interval(speedup)
    if number is None:
        return ""
    return f"{number} ({interval})" if interval else number


def accuracy_label(accuracy: Entry | None) -> str:
    """Format the accuracy change against the baseline in percentage points."""
    if accuracy is None:
        return "no labels"
    changed = points(accuracy.get("delta"), accuracy.get("samples"))
    return "" if changed is None else f"{changed} points"


def verdict(recommendation: Entry, result: Entry, speedup: Entry | None) -> str:
    """Describe the recommended variant in a word or two."""
    if result.get("baseline") == recommendation["variant"]:
        words = ["baseline"]
    else:
        words = [speedup["verdict"]] if speedup else []
    if equal := recommendation.get("equal"):
        words.append(f"equal to {len(equal)} other" + ("s" if len(equal) > 1 else ""))
    if recommendation.get("provisional"):
        words.append("provisional")
    return ", ".join(words)


def undecided(document: Entry) -> list[str]:
    """Explain why there is no recommendation, a line per shape without one."""
    return [
        f"{one['model']}, {size_label(one['shape'])}: {one['why']}"
        for one in document["recommendations"]
        if one["variant"] is None
    ]


def goals(document: Entry) -> list[str]:
    """Return the decision for the goal, a line each, but those that `undecided` tells."""
    return [
        f"{one['model']}: {one['sentence']}" + " (provisional)" * one["provisional"]
        for one in document.get("goals", ())
        if one["variant"] is not None or one["shape"] is None
    ]


def may_be_better(document: Entry) -> list[str]:
    """Name the faster variants whose accuracy needs more examples, a line per model and variant."""
    needed = {
        (result["model"], result["variant"]): (result.get("accuracy") or {}).get("samples_needed")
        for result in document["results"]
    }
    keys = dict.fromkeys(
        (entry["model"], variant)
        for entry in document["recommendations"]
        for variant in entry.get("undecided", ())
    )
    return [
        f"{model}: {variant} may be better: it takes about {needed[model, variant]:,} evaluation "
        "examples to show that it keeps the accuracy"
        for model, variant in keys
        if needed.get((model, variant))
    ]


def cut_texts(document: Entry) -> list[str]:
    """Return how many texts were cut, a line per model with such texts."""
    found = {
        name: truncation_words(model.get("truncation") or {})
        for name, model in document.get("models", {}).items()
    }
    return [f"{name}: {words}" for name, words in found.items() if words]


def is_provisional(document: Entry) -> bool:
    """Return whether disturbed measurements could change the decision at some shape."""
    return any(one.get("provisional") for one in document["recommendations"])


def disturbed(document: Entry) -> list[Entry]:
    """Return what was disturbed by other load: rows of latency, races, and all other figures."""
    rows = [row for result in document["results"] for row in result.get("latency", ())]
    races = [race for race in document.get("races", ()) if race.get("status") == "disturbed"]
    tests = [row for entry in document.get("traffic", ()) for row in entry["rows"]]
    points = [one for entry in document.get("throughput", ()) for one in entry["points"]]
    pauses = [one for entry in document.get("idleness", ()) for one in entry["pauses"]]
    shapes = [shape for family in document.get("families", ()) for shape in family["shapes"]]
    others = (*tests, *points, *pauses, *document.get("training", ()), *shapes)
    return [
        *(
            row
            for row in rows
            if (row.get("speedup") or {}).get("verdict") == "disturbed" or row.get("disturbed")
        ),
        *races,
        *(one for one in others if one.get("disturbed")),
    ]


def poor_baselines(document: Entry) -> list[str]:
    """Remark on baselines that may be no better than chance, a line per model."""
    results = document["results"]
    remarks = {
        name: poor_baseline(model, [one for one in results if one["model"] == name])
        for name, model in document.get("models", {}).items()
    }
    return [f"{name}: {remark}" for name, remark in remarks.items() if remark]
