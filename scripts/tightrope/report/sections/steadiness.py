"""Stability of the measurements: remarks on each row, and the number of rows with each."""

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from tightrope.report.style.numbers import is_number
from tightrope.summary.document import Summary
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
    found = []
    if row.get("disturbed"):
        word = "provisional" if row.get("provisional") else "disturbed"
        found.append(Remark(word, [row["disturbed"]]))
    if row.get("noisy"):
        found.append(Remark("noisy", list(row.get("noise") or ["no reason was recorded"])))
    if row.get("stop") == "time limit":
        found.append(Remark("time limit", [late(row)]))
    if words := other_threads(result, row):
        found.append(Remark("threads", [words]))
    return found


def disturbed_section(summary: Summary) -> dict[str, Any] | None:
    """Return the measurements that other load left without a number; None if undisturbed.

    `rows` counts the latencies and `races` the races without a winner; `undecided` is whether they
    could change the decision at some shape. `what` has the counts per kind of measurement,
    `reasons` the distinct reasons.
    """
    results, traffic = summary.get("results") or (), summary.get("traffic") or ()
    rows = [row for result in results for row in result.get("latency") or ()]
    tests = [row for entry in traffic for row in entry.get("rows") or ()]
    without, tested, trained = (
        [one for one in kind if one.get("disturbed")]
        for kind in (rows, tests, summary.get("training") or ())
    )
    races = [one for one in summary.get("races") or () if one.get("status") == "disturbed"]
    counted = (
        (without, f"{len(without)} of {len(rows)} latencies"),
        (races, f"the decision at {plural(len(races), 'shape')}"),
        (tested, f"{plural(len(tested), 'row')} of real traffic"),
        (trained, plural(len(trained), "training")),
    )
    marked = without + tested + trained
    told = [one["disturbed"] for one in marked] + [race.get("reason") for race in races]
    if not told:
        return None
    return {
        "rows": len(without),
        "races": len(races),
        "undecided": any(one.get("provisional") for one in summary.get("recommendations") or ()),
        "what": [words for found, words in counted if found],
        "provisional": any(one.get("provisional") for one in marked),
        "reasons": list(dict.fromkeys(filter(None, told))),
    }


def plural(count: int, word: str) -> str:
    """Format a count with its noun: "1 shape", "2 shapes"."""
    return f"{count} {word}" if count == 1 else f"{count} {word}s"


def late(row: Record) -> str:
    """Explain a stop at the time limit; a baseline alone has no interval."""
    if row.get("speedup"):
        return "stopped at the time limit: the interval is wider than asked for"
    return "stopped at the time limit, with fewer quiet pairs of blocks than asked for"


def other_threads(result: Record, row: Record) -> str | None:
    """Report that more or fewer threads worked than configured, None if neither.

    Only on a CPU: driving a GPU needs one thread.
    """
    asked, busy = result.get("threads"), row.get("threads_busy")
    if result.get("device") != "cpu" or not is_number(asked) or not is_number(busy):
        return None
    if busy > asked:
        return f"kept {busy} threads busy, {asked} were configured"
    return f"kept {busy} of {asked} threads busy" if busy < asked else None


def steadiness(results: Iterable[Result]) -> dict[str, Any] | None:
    """Count the latency rows with each remark; None if noise was not recorded.

    `rows`, `noisy`, `late` (None if no row could have stopped late), `disturbed` (pairs of blocks
    disturbed by other load), `spread` (the largest variation of the baseline's time between jobs, a
    fraction), `thread_rows`, and `threads`: (words, variants) pairs.
    """
    rows = [(result, row) for result in results for row in result.get("latency") or ()]
    if not any("noisy" in row for _, row in rows):
        return None
    threads: dict[str, list[Any]] = {}
    for result, row in rows:
        if words := other_threads(result, row):
            threads.setdefault(words, []).append(result.get("variant"))
    stops = [row["stop"] for _, row in rows if row.get("stop") not in (None, "calls")]
    return {
        "rows": len(rows),
        "noisy": sum(bool(row.get("noisy")) for _, row in rows),
        "late": stops.count("time limit") if stops else None,
        "disturbed": sum(row.get("disturbed_pairs") or 0 for _, row in rows),
        "spread": max(row.get("machine_spread") or 0.0 for _, row in rows),
        "thread_rows": sum(len(variants) for variants in threads.values()),
        "threads": [(words, list(dict.fromkeys(names))) for words, names in threads.items()],
    }
