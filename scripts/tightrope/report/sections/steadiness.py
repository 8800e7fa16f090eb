"""Stability of the measurements: remarks on each row, and the number of rows with each."""

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from tightrope.report.sections.gpu import gpu_steadiness
from tightrope.report.style.numbers import is_number
from tightrope.summary.document import Summary, remeasure_command
from tightrope.summary.result_types import Result

Record = Mapping[str, Any]


class Remark(NamedTuple):
    """Word that marks a row, and its meaning in sentences."""

    word: str
    reasons: list[str]


def remarks(result: Record, row: Record) -> list[Remark]:
    """Return the remarks on a latency row; empty for a steady row.

    The words are `disturbed` or `provisional`, `noisy`, `time limit` and `threads`.
    """
    row_remarks = []
    if row.get("disturbed"):
        word = "provisional" if row.get("provisional") else "disturbed"
        row_remarks.append(Remark(word, [row["disturbed"]]))
    if row.get("noisy"):
        row_remarks.append(Remark("noisy", list(row.get("noise") or ["no reason was recorded"])))
    if row.get("stop") == "time limit":
        row_remarks.append(Remark("time limit", [explain_late_stop(row)]))
    if sentence := other_threads(result, row):
        row_remarks.append(Remark("threads", [sentence]))
    return row_remarks


def disturbed_section(summary: Summary) -> dict[str, Any] | None:
    """Return the measurements that other load left without a number; None if undisturbed.

    `undecided` is whether they could change the decision at some shape. `what` has the counts per
    kind of measurement, `reasons` the distinct reasons, `command` measures them again.
    """
    rows = [row for one in summary["results"] for row in one["latency"]]
    disturbed_rows: list[Record] = [row for row in rows if row.get("disturbed")]
    races = [race for race in summary["races"] if race["status"] == "disturbed"]
    others = disturbed_others(summary)
    counted = (
        (disturbed_rows, f"{len(disturbed_rows)} of {len(rows)} latencies"),
        (races, f"the decision at {plural(len(races), 'shape')}"),
        *others,
    )
    marked = disturbed_rows + [one for entries, _ in others for one in entries]
    reasons = [entry["disturbed"] for entry in marked] + [race.get("reason") for race in races]
    if not reasons:
        return None
    return {
        "undecided": any(entry["provisional"] for entry in summary["recommendations"]),
        "what": [text for items, text in counted if items],
        "provisional": any(entry.get("provisional") for entry in marked),
        "command": remeasure_command(summary),
        "reasons": list(dict.fromkeys(filter(None, reasons))),
    }


def disturbed_others(summary: Record) -> list[tuple[list[Record], str]]:
    """Return what was disturbed of all that no decision needs, and how much it is in words."""
    found: list[tuple[list[Record], str]] = []
    for name, entries in summary["studies"].items():
        disturbed = [one for entry in entries for one in entry["rows"] if one["disturbed"]]
        found.append((disturbed, f"{plural(len(disturbed), 'row')} of {name}"))
    disturbed = [one for one in summary["training"] if one.get("disturbed")]
    return [*found, (disturbed, plural(len(disturbed), "training"))]


def plural(count: int, word: str) -> str:
    """Format a count with its noun: "1 shape", "2 shapes"."""
    return f"{count} {word}" if count == 1 else f"{count} {word}s"


def explain_late_stop(row: Record) -> str:
    """Explain a stop at the time limit; a baseline alone has no interval."""
    if row.get("speedup"):
        return "stopped at the time limit: the interval is wider than asked for"
    return "stopped at the time limit, with fewer quiet pairs of blocks than asked for"


def other_threads(result: Record, row: Record) -> str | None:
    """Report that more or fewer threads worked than configured, None if neither.

    Only on a CPU: driving a GPU needs one thread.
    """
    configured, busy = result.get("threads"), row.get("threads_busy")
    if result.get("device") != "cpu" or not is_number(configured) or not is_number(busy):
        return None
    if busy > configured:
        return f"kept {busy} threads busy, {configured} were configured"
    return f"kept {busy} of {configured} threads busy" if busy < configured else None


def steadiness(results: Iterable[Result]) -> dict[str, Any] | None:
    """Count the latency rows with each remark; None without any row.

    `rows`, `noisy`, `late` (None if no row could have stopped late), `disturbed` (pairs of blocks
    disturbed by other load), `spread` (the largest variation of the baseline's time between jobs, a
    fraction), `thread_rows`, `threads`: (sentence, variants) pairs, and `gpu`: (title, sentence)
    pairs.
    """
    results = list(results)
    rows = [(result, row) for result in results for row in result.get("latency") or ()]
    if not rows:
        return None
    threads: dict[str, list[Any]] = {}
    for result, row in rows:
        if sentence := other_threads(result, row):
            threads.setdefault(sentence, []).append(result.get("variant"))
    stops = [row["stop"] for _, row in rows if row.get("stop") not in (None, "calls")]
    return {
        "rows": len(rows),
        "noisy": sum(bool(row.get("noisy")) for _, row in rows),
        "late": stops.count("time limit") if stops else None,
        "disturbed": sum(row.get("disturbed_pairs") or 0 for _, row in rows),
        "spread": max(row.get("machine_spread") or 0.0 for _, row in rows),
        "thread_rows": sum(len(variants) for variants in threads.values()),
        "threads": [(sentence, list(dict.fromkeys(names))) for sentence, names in threads.items()],
        "gpu": gpu_steadiness(results),
    }
