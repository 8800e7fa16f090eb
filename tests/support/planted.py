"""Changes planted in a real summary, as another run would have written it."""

import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tightrope.compare.compare import Comparison, compare
from tightrope.compare.read import read_report

Summary = dict[str, Any]
Change = Callable[[Summary], None]


def written(folder: Path, document: Summary) -> Path:
    """Write a summary alone, without the records that were beside it."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "summary.json"
    path.write_text(json.dumps(document))
    return path


def compared(folder: Path, old: Summary, new: Summary, **options: Any) -> Comparison:
    """The comparison of two documents without records."""
    paths = written(folder / "old", old), written(folder / "new", new)
    return compare(*(read_report(path) for path in paths), **options)


def changed(document: Summary, *changes: Change) -> Summary:
    """A copy of the summary, measured later, with these changes."""
    other = copy.deepcopy(document)
    for result in other["results"]:
        result["measured"] = result.get("measured") and f"{result['measured']}, later"
    for change in changes:
        change(other)
    return other


def results_of(document: Summary, word: str = "") -> list[Any]:
    """The results, but the baselines, whose variants have the word in their names."""
    return [
        one
        for one in document["results"]
        if one["status"] == "ok" and one["baseline"] != one["variant"] and word in one["variant"]
    ]


def take_longer(result: dict[str, Any], factor: float) -> None:
    """All calls of the result take that many times as long."""
    for row in result["latency"]:
        for name in ("p50_s", "p90_s", "p99_s", "mean_s", "paired_s"):
            if row[name] is not None:
                row[name] *= factor


def slower(factor: float, word: str = "") -> Change:
    """All calls of the variants with that word take that many times as long."""

    def change(document: Summary) -> None:
        for result in results_of(document, word):
            take_longer(result, factor)
            for row in result["latency"]:
                for name in ("ratio", "low", "high"):
                    row["speedup"][name] /= factor

    return change


def held(share: float) -> Change:
    """The machine holds its speed, so that the intervals of speed-ups are as narrow as this."""

    def change(document: Summary) -> None:
        for result in results_of(document):
            for row in result["latency"]:
                ratio = row["speedup"]["ratio"]
                row["speedup"].update(low=ratio / (1 + share), high=ratio * (1 + share))

    return change


def busier(factor: float) -> Change:
    """The machine takes that many times as long for everything, so that speed-ups stay."""

    def change(document: Summary) -> None:
        for result in document["results"]:
            take_longer(result, factor)

    return change


def library(name: str, version: str) -> Change:
    """Another version of a library on every host."""

    def change(document: Summary) -> None:
        for host in document["hosts"].values():
            host["libraries"][name] = version

    return change


def wrong(count: int, word: str) -> Change:
    """The variants with that word answer so many examples wrongly that the baseline has right."""

    def change(document: Summary) -> None:
        for result in results_of(document, word):
            accuracy = result["accuracy"]
            labels = document["models"][result["model"]]["labels"]
            listed = [one["index"] for one in accuracy["flipped"]]
            free = [index for index in range(accuracy["samples"]) if index not in listed][:count]
            accuracy["flipped"] += [
                {
                    **{"index": index, "text": f"example {index}", "label": labels[0]},
                    **{"baseline": labels[0], "prediction": labels[1]},
                    **{"baseline_margin": 1.0, "margin": 1.0},
                }
                for index in free
            ]
            accuracy["flips"] += count
            accuracy["top1"] -= count / accuracy["samples"]

    return change
